// What is doubtful about an advice, the most serious first; what holds for every call is one quiet line.

import { byId, element, write } from "./elements.js";
import { figure } from "./format.js";
import { knows, t } from "./language.js";

export function drawRemarks(advice) {
  const all = advice && advice.decision !== "no_advice" ? advice.degraded : [];
  fill(byId("doubts"), all.filter((remark) => !remark.standing));
  fill(byId("standing-doubts"), all.filter((remark) => remark.standing));
  const sooner = advice?.sooner_unit ?? null;
  byId("sooner").hidden = !sooner;
  write(byId("sooner"), sooner ? soonerWords(sooner, advice.primary) : "");
}

/** Another ambulance that is expected before the primary. */
export function soonerWords({ depot, seconds, probability }, primary) {
  const percent = Math.min(99, Math.floor(100 * probability));
  return t("sooner", { depot, seconds: figure(seconds), primary: primary.depot, percent });
}

function fill(list, remarks) {
  list.replaceChildren(...remarks.map(line));
  list.hidden = !remarks.length;
}

/** A remark: in the reader's language where its codes are known, and as the service says it. */
export function line({ code, words, also = [] }) {
  const own = ownWords([code, ...also]);
  const said = own ? [own, element("small", { lang: "en" }, words)] : [words];
  return element("li", { title: words }, ...said);
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
