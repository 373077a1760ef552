// Closed roads: the list beside the calls, and what the map shows of them.

import { byId, element, write } from "../elements.js";
import { moment } from "../format.js";
import { t } from "../language.js";

const begun = ({ from }, now) => !from || Date.parse(from) <= now;
const closesNothing = ({ edges }) => edges.length === 0; // the network changed

/** Closures of now and those to come, by the service's clock. */
export function closuresNow({ closures }, now) {
  return closures
    .filter(({ until }) => !until || Date.parse(until) > now)
    .map((closure) => ({ ...closure, active: begun(closure, now) && !closesNothing(closure) }));
}

const name = ({ reason }) => reason || t("closures.unnamed");

function times(closure, now) {
  if (closesNothing(closure)) return t("closures.void");
  const { from, until } = closure;
  const parts = [];
  if (!begun(closure, now)) parts.push(t("closures.from", { time: moment(from, now) }));
  parts.push(until ? t("closures.until", { time: moment(until, now) }) : t("closures.open"));
  return parts.join(", ");
}

/** A closure in a few lines, for whoever points at it. */
export function closureLines(closure, now) {
  const by = t("closures.by", { by: closure.by ?? "", time: moment(closure.at, now) });
  return [t("closures.closed", { reason: name(closure) }), times(closure, now), by];
}

/** Lines of the closed roads: of the network where it is known, else as they were drawn. */
export function closedLines({ edges, line, polygon }, network) {
  const found = new Set(edges.map((edge) => roadsByEdge(network).get(edge)).filter(Boolean));
  if (found.size) return [...found];
  return [line ?? polygon ?? []];
}

let index = [null, new Map()];

function roadsByEdge(network) {
  if (index[0] === network) return index[1];
  const roads = new Map();
  for (const { geometry, properties } of network?.features ?? []) {
    for (const edge of properties?.edges ?? []) roads.set(edge, geometry.coordinates);
  }
  index = [network, roads];
  return roads;
}

/** Draw the list; `look` and `end` are called with the chosen closure. */
export function drawClosureList(store, now, look, end) {
  const all = closuresNow(store, now);
  byId("closures-box").hidden = all.length === 0;
  write(byId("closures-title"), t("closures", { count: all.length }));
  const list = byId("closures");
  const may = store.mayClose;
  const text = JSON.stringify([may, all.map((one) => [one.id, ...closureLines(one, now)])]);
  if (list.dataset.text === text) return; // a click or the focus must not be lost
  const kept = document.activeElement?.closest("#closures button")?.dataset.key;
  list.dataset.text = text;
  list.replaceChildren(...all.map((closure) => item(closure, now, may, look, end)));
  if (kept) list.querySelector(`[data-key="${CSS.escape(kept)}"]`)?.focus();
}

function item(closure, now, may, look, end) {
  const shown = element(
    "button",
    { type: "button", class: "closure", "data-key": `look ${closure.id}` },
    element("i", { class: "key closed", "aria-hidden": "true" }),
    element("span", { class: "short" }, name(closure)),
    element("span", { class: "time" }, times(closure, now)),
  );
  shown.addEventListener("click", () => look(closure));
  if (!may) return element("li", {}, shown);
  const words = t("closures.end_of", { reason: name(closure) });
  const ended = element(
    "button",
    { type: "button", class: "end", "aria-label": words, title: words, "data-key": `end ${closure.id}` },
    "×",
  );
  ended.addEventListener("click", () => end(closure));
  return element("li", {}, shown, ended);
}
