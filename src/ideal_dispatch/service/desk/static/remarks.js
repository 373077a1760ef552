// What is doubtful about an advice, the most serious first; what holds for every call is one quiet line.

import { losses, standing } from "./advice.js";
import { byId, element, write } from "./elements.js";
import { anonymous, nameOf } from "./fleet.js";
import { chance, figure } from "./format.js";
import { knows, t } from "./language.js";

export function drawRemarks(advice, store, now) {
  const all = advice && advice.decision !== "no_advice" ? advice.degraded : [];
  const lost = advice && standing(advice, store, now) !== "superseded" ? losses(advice, store, now) : [];
  fill(byId("losses"), lost.map(lossLine));
  fill(byId("doubts"), all.filter((remark) => !remark.standing).map(line));
  fill(byId("standing-doubts"), all.filter((remark) => remark.standing).map(line));
  const sooner = advice?.sooner_unit ?? null;
  byId("sooner").hidden = !sooner;
  write(byId("sooner"), sooner ? soonerWords(sooner, advice.primary) : "");
}

/** Another ambulance that is expected before the primary. */
export function soonerWords(sooner, primary) {
  const { depot, seconds, probability } = sooner;
  const who = anonymous(sooner) ? depot : t("unit.of", { unit: sooner.unit, depot });
  const values = { who, seconds: figure(seconds), primary: nameOf(primary), chance: chance(probability) };
  return t("sooner", values);
}

/** That a unit which this call counted on does something else now. */
export function lossWords({ unit, why, by_call: call }) {
  return t(`lost.${call && why === "on_call" ? "sent" : why}`, { unit, call: call ?? "–" });
}

const lossLine = (loss) =>
  element("li", { "data-why": loss.why }, `${lossWords(loss)}${t("space")}${t("lost.then")}`);

function fill(list, items) {
  list.replaceChildren(...items);
  list.hidden = !items.length;
}

/** A remark: in the reader's language where its codes are known, and as the service says it. */
export function line({ code, words, also = [] }) {
  const own = ownWords([code, ...also]);
  const said = own ? [own, element("small", { lang: "en" }, words)] : [words];
  return element("li", { title: words, "data-code": code }, ...said);
}

/** The first doubt in words, for whoever listens. */
export function firstDoubt({ degraded }) {
  const first = degraded.find((remark) => !remark.standing);
  return first ? ownWords([first.code]) || first.words : "";
}

const ownWords = (codes) =>
  codes
    .map((code) => `degraded.${code}`)
    .filter(knows)
    .map((key) => t(key))
    .join(" · ");
