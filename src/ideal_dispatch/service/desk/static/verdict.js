// The banner: one shape, a few giant words, and whether they may still be used.

import { oldBecause, open } from "./advice.js";
import { byId, write } from "./elements.js";
import { clockTime, countdown, figure } from "./format.js";
import { t } from "./language.js";
import { firstDoubt, soonerWords } from "./remarks.js";

const OLD = ["expired", "superseded", "offline"];

let said = "";

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
  const standing = standingOf(advice, store, now);
  const words = t(`verdict.${advice?.decision ?? "none"}`);
  const verdict = standing === "decided" ? t("verdict.was", { words }) : words;
  const old = OLD.includes(standing) ? standingWords(advice, standing) : "";
  byId("advice").dataset.standing = standing;
  write(byId("verdict-words"), verdict);
  byId("standing").hidden = !old;
  write(byId("standing"), old);
  const counting = standing === "current" && advice.decision !== "no_advice";
  byId("expiry").hidden = !counting;
  if (counting) {
    const [start, end] = [Date.parse(advice.created_at), Date.parse(advice.expires_at)];
    const left = Math.min(end - now, end - start);
    write(byId("countdown"), countdown(left));
    byId("left").value = left / Math.max(1, end - start);
  }
  announce(advice ? spoken(advice, standing, old || verdict) : "");
}

/** Whether an advice may be used. Once its call has a dispatch, it is decided: history. */
function standingOf(advice, store, now) {
  if (!advice) return store.online ? "waiting" : "offline";
  const old = oldBecause(advice, store, now);
  if (old && old !== "expired") return old;
  return store.dispatchOf(advice) && !open(advice, store, now) ? "decided" : (old ?? "current");
}

/** Tell a screen reader the verdict once, and again when it becomes old. */
function announce(words) {
  if (words === said) return;
  said = words;
  byId("said").textContent = words;
}

function spoken(advice, standing, words) {
  const parts = [callWords(advice), words];
  if (standing !== "current") return parts.join(". ");
  if (advice.decision === "send_second") {
    parts.push(`${t("facts.second_from")} ${advice.second?.depot ?? ""}`);
    if (Number.isFinite(advice.gain_s)) {
      parts.push(`${t("facts.gain")} ${t("time.seconds", { seconds: figure(advice.gain_s) })}`);
    }
  }
  if (advice.decision !== "no_advice") parts.push(firstDoubt(advice));
  if (advice.sooner_unit) parts.push(soonerWords(advice.sooner_unit, advice.primary));
  return parts.filter(Boolean).join(". ");
}

/** Why it is old; there is nothing to use by mistake in an expired "no advice". */
function standingWords(advice, old) {
  const nothing = old === "expired" && advice.decision === "no_advice";
  return t(nothing ? "standing.expired_no_advice" : `standing.${old}`);
}

function callWords(advice) {
  const parts = [t("banner.call", { call: advice.call_id })];
  if (advice.revision > 1) parts.push(t("banner.revision", { revision: advice.revision }));
  parts.push(t("banner.received", { time: clockTime(advice.received_at) }));
  return parts.join(" · ");
}
