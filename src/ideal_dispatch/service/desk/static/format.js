// Numbers and times as people read them.

import { language, t } from "./language.js";

let zone;

export function useZone(name) {
  zone = name;
}

export function clockTime(instant, seconds = true) {
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone };
  if (seconds) options.second = "2-digit";
  return new Intl.DateTimeFormat(language() === "en" ? "en-GB" : "zh-HK", options).format(
    new Date(instant),
  );
}

/** A number without false precision: 41, but 4.1; half a second matters only to small ones. */
export function figure(number) {
  const digits = Math.abs(number) < 9.95 ? 1 : 0;
  const text = number.toFixed(digits);
  return Number(text) === 0 ? "0" : text.replace("-", "−");
}

/** A drive, to the second: 7 min 05 s. */
export function drive(seconds) {
  const total = Math.round(seconds);
  if (total < 60) return t("time.seconds", { seconds: total });
  const rest = String(total % 60).padStart(2, "0");
  return t("time.drive", { minutes: Math.floor(total / 60), seconds: rest });
}

/** An age in one unit: 40 s, 12 min, 3 h. */
export function age(seconds) {
  const total = Math.max(0, Math.round(seconds));
  if (total < 120) return t("time.seconds", { seconds: total });
  if (total < 7200) return t("time.minutes", { minutes: Math.round(total / 60) });
  return t("time.hours", { hours: Math.round(total / 3600) });
}

/** What is left: 1:05. */
export function countdown(milliseconds) {
  const total = Math.max(0, Math.ceil(milliseconds / 1000));
  return `${Math.floor(total / 60)}:${String(total % 60).padStart(2, "0")}`;
}

export const kilometres = (metres) => t("distance.km", { km: (metres / 1000).toFixed(1) });

/** A time of day, with its day where that is not today. */
export function moment(instant, now) {
  const day = new Intl.DateTimeFormat(language() === "en" ? "en-GB" : "zh-HK", {
    day: "numeric",
    month: "short",
    timeZone: zone,
  });
  const [then, today] = [day.format(new Date(instant)), day.format(new Date(now))];
  const time = clockTime(instant, false);
  return then === today ? time : `${then} ${time}`;
}
