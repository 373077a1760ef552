// The banner: one shape and a few giant words while an advice waits; what became of it afterwards.

import { losses, standing, verdictWords } from "./advice.js";
import { byId, write } from "./elements.js";
import { nameOf } from "./fleet.js";
import { countdown, figure, moment } from "./format.js";
import { t } from "./language.js";
import { firstDoubt, lossWords, soonerWords } from "./remarks.js";
import { replyWords } from "./reply.js";

export function drawVerdict(advice, store, now) {
  const decision = advice?.decision ?? "none";
  byId("advice").dataset.decision = decision;
  byId("verdict-shape").setAttribute("href", `#shape-${decision}`);
  write(byId("call"), advice ? callWords(advice) : "");
  write(byId("note"), advice?.note ?? "");
  tickVerdict(advice, store, now);
}

/** Time moves on: the countdown, and the moment when an advice becomes old. */
export function tickVerdict(advice, store, now) {
  const is = advice ? standing(advice, store, now) : store.online ? "waiting" : "offline";
  const [words, beside] = advice ? adviceWords(advice, is) : emptyWords(store, is);
  byId("advice").dataset.standing = is;
  write(byId("verdict-words"), words);
  byId("standing").hidden = !beside;
  write(byId("standing"), beside);
  const counting = is === "open" && advice.decision !== "no_advice";
  byId("expiry").hidden = !counting;
  if (counting) {
    const [start, end] = [Date.parse(advice.asked_at), Date.parse(advice.expires_at)];
    const left = Math.min(end - now, end - start);
    write(byId("countdown"), countdown(left));
    byId("left").value = left / Math.max(1, end - start);
  }
  write(byId("said"), advice ? spoken(advice, store, now, is, words, beside) : "");
}

function emptyWords(store, is) {
  if (is === "offline") return [t("verdict.none"), t("standing.offline")];
  return store.city && !store.fleet.known
    ? [t("verdict.no_units"), t("facts.report_units")]
    : [t("verdict.none"), ""];
}

/** The giant words, and what stands below them. An advice that is no longer open never shouts. */
function adviceWords(advice, is) {
  const verdict = verdictWords(advice);
  if (is === "open") return [verdict, ""];
  if (advice.decision === "no_advice") {
    return [verdict, t(is === "expired" ? "standing.expired_no_advice" : `standing.${is}`)];
  }
  const was = t("verdict.was", { words: verdict });
  if (is === "running" || is === "ended") return [was, ""];
  const [by, reason] = advice.reply ? replyWords(advice.reply) : [];
  const answered = is === "accepted" || is === "overridden";
  const head = answered && by ? by : t(`standing.${is}`);
  return [head, [answered ? "" : by, reason, was].filter(Boolean).join(" · ")];
}

/** What a screen reader says of the verdict, and again when it becomes old. */
function spoken(advice, store, now, is, words, beside) {
  const parts = [callWords(advice), words, beside];
  parts.push(...losses(advice, store, now).map(lossWords));
  if (is === "open" && advice.decision === "send_second") {
    parts.push(`${t("facts.second_from")} ${nameOf(advice.second)}`);
    parts.push(`${t("facts.gain")} ${t("time.seconds", { seconds: figure(advice.gain_s) })}`);
  }
  if (is === "open" && advice.decision !== "no_advice") parts.push(firstDoubt(advice));
  if (is === "open" && advice.sooner_unit) parts.push(soonerWords(advice.sooner_unit, advice.primary));
  return parts.filter(Boolean).join(". ");
}

function callWords(advice) {
  const parts = [t("banner.call", { call: advice.call_id })];
  if (advice.revision > 1) parts.push(t("banner.revision", { revision: advice.revision }));
  const time = moment(advice.received_at, Date.parse(advice.asked_at), true);
  parts.push(t("banner.received", { time }));
  return parts.join(" · ");
}
