// Numbers and times as people read them.

import { language, t } from "./language.js";

let zone;

export function useZone(name) {
  zone = name;
}

const dates = (options) =>
  new Intl.DateTimeFormat(language() === "en" ? "en-GB" : "zh-HK", { ...options, timeZone: zone });

export function clockTime(instant, seconds = true) {
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  if (seconds) options.second = "2-digit";
  return dates(options).format(new Date(instant));
}

/** A time of day, with its day where that is not today. */
export function moment(instant, now, seconds = false) {
  const day = dates({ day: "numeric", month: "short" });
  const [then, today] = [day.format(new Date(instant)), day.format(new Date(now))];
  const time = clockTime(instant, seconds);
  return then === today ? time : `${then} ${time}`;
}

/** A number without false precision: 41, but 4.1; half a second matters only to small ones. */
export function figure(number) {
  const digits = Math.abs(number) < 9.95 ? 1 : 0;
  const text = number.toFixed(digits);
  return Number(text) === 0 ? "0" : text.replace("-", "−");
}

/** A chance in percent, never more certain than it is: 0.997 is over 99 %, 0.002 under 1 %. */
export function chance(share) {
  if (share > 0.99) return t("chance.over");
  if (share < 0.01) return t("chance.under");
  return t("chance", { percent: Math.round(100 * share) });
}

/** Lives in 10,000 such dispatches. */
export const lives = (share) =>
  share > 0 && share < 5e-7 ? "< 0.005" : String(Number((1e4 * share).toPrecision(2)));

/** Minutes and seconds: 7:05. */
export function minutes(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** What is left: 1:05. */
export const countdown = (milliseconds) => minutes(Math.max(0, Math.ceil(milliseconds / 1000)));

/** An age in one unit: 40 s, 12 min, 3 h. */
export function age(seconds) {
  const total = Math.max(0, Math.round(seconds));
  if (total < 120) return t("time.seconds", { seconds: total });
  if (total < 7200) return t("time.minutes", { minutes: Math.round(total / 60) });
  return t("time.hours", { hours: Math.round(total / 3600) });
}

export const kilometres = (metres) => t("distance.km", { km: (metres / 1000).toFixed(1) });
