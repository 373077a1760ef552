// The advice in facts: who arrives when, by which roads, how much sooner, on data how old.

import { arrival, left, secondGoes, standing } from "./advice.js";
import { byId, element, svg, write } from "./elements.js";
import { anonymous, countWords } from "./fleet.js";
import { age, chance, clockTime, figure, kilometres, minutes } from "./format.js";
import { t } from "./language.js";
import { line } from "./remarks.js";

const ROADS = 3;
const LONG = 16; // characters of a unit's name

export function drawFacts(advice, store, now) {
  const hints = store.city?.simulated ? ["facts.none", "facts.try"] : ["facts.none"];
  const parts = advice ? of(advice) : hints.map((key) => element("p", { class: "plain" }, t(key)));
  byId("facts").replaceChildren(...parts.filter(Boolean));
  byId("ages").replaceChildren(...(advice ? ages(advice) : []));
  tickFacts(advice, store, now);
}

/** Arrivals come nearer, ages grow, and units come and go while an advice is looked at. */
export function tickFacts(advice, store, now) {
  if (!advice) return;
  const is = standing(advice, store, now);
  const waits = ["open", "accepted"].includes(is);
  const goes = secondGoes(advice, store, now);
  for (const node of byId("facts").querySelectorAll("[data-arrives]")) {
    const role = node.dataset.arrives;
    const found = arrival(advice, role);
    const ours = role === "second" || advice.primary.chosen_by === "router";
    const unsent = ours && (is === "open" || !goes); // its time stands still: it counts from when it is sent
    const rest = left(found, unsent ? Date.parse(advice.asked_at) : now);
    const counts = waits && rest.total > 0;
    const unit = store.fleet.units.get(advice[role].unit);
    const there = unit?.status === "on_scene" && unit.call_id === advice.call_id;
    const parts = rest.turnout
      ? t("arrival.parts", { turnout: minutes(rest.turnout), drive: minutes(rest.drive) })
      : t("arrival.drive", { drive: minutes(rest.drive) });
    const [label, time, beside] = node.children;
    const would = role === "second" && !goes ? "would_" : "";
    const words = counts && unsent && !would ? "arrival.if_sent" : `arrival.${would}${counts ? "in" : "at"}`;
    write(label, there ? "" : t(words));
    write(time, there ? t("unit.on_scene") : counts ? minutes(rest.total) : clockTime(found.at));
    write(beside, counts && !there ? parts : "");
  }
  const gains = byId("facts").querySelector(".gain .label");
  if (gains) write(gains, t(is === "open" ? "facts.gain" : "facts.gain_then"));
  for (const node of byId("facts").querySelectorAll("[data-depot]")) {
    write(node, waits ? countWords(store.fleet.depot(node.dataset.depot, now)) : "");
  }
  const since = Math.max(0, now - Date.parse(advice.asked_at)) / 1000;
  for (const node of document.querySelectorAll("[data-age]")) {
    const seconds = age(Number(node.dataset.age) + since);
    const seen = is === "open" ? t("unit.seen", { age: seconds }) : ""; // where it was then is no news later
    write(node, node.className === "seen" ? seen : seconds);
  }
}

function of(advice) {
  if (advice.decision === "no_advice") {
    const reasons = element("ul", { class: "degraded" }, ...advice.degraded.map(line));
    return [element("p", { class: "plain" }, element("strong", {}, t("facts.no_advice"))), reasons];
  }
  const [first, then] = advice.decision === "send_second" ? ["second", "primary"] : ["primary", "second"];
  return [who(advice, first, true), gain(advice), who(advice, then)];
}

function who(advice, role, main = false) {
  const one = advice[role];
  const kind = `who ${role}${main ? " main" : ""}`;
  if (!one) {
    const none = role === "second" ? "facts.no_second" : "facts.primary_unknown";
    return element("div", { class: kind }, t(none));
  }
  const stays = role === "second" && advice.decision === "primary_only";
  const router = one.chosen_by === "router" ? "_router" : "";
  const label = t(stays ? "facts.second_stays" : `facts.${role}_from${router}`);
  const depot = one.start.on_road ? t("facts.on_road", { depot: one.depot }) : one.depot;
  const seen = one.start.on_road && Number.isFinite(one.start.age_s);
  return element(
    "div",
    { class: kind },
    element("p", { class: "label" }, label),
    element(
      "p",
      { class: "depot" },
      anonymous(one) ? null : element("bdi", { class: one.unit.length > LONG ? "long" : null }, one.unit),
      element("bdi", { class: anonymous(one) ? null : "unit" }, depot),
      one.start.on_road ? null : element("span", { class: "unit", "data-depot": one.depot }),
    ),
    element(
      "p",
      { class: "arrives", "data-arrives": role },
      element("span"),
      element("strong"),
      element("span", { class: "parts" }),
    ),
    element(
      "p",
      { class: "way" },
      element("span", {}, roadWords(one.route)),
      seen ? element("span", { class: "seen", "data-age": one.start.age_s }) : null,
    ),
  );
}

function roadWords({ length_m: length, roads }) {
  if (!length) return t("facts.there");
  const names = roads.slice(0, ROADS).join(" → ") || t("facts.unnamed");
  const more = roads.length > ROADS ? " → …" : "";
  return t("facts.way", { length: kilometres(length), roads: names + more });
}

function gain(advice) {
  const { gain_s: seconds, second_first: share } = advice;
  if (!Number.isFinite(seconds)) return null;
  const threshold = advice.why.threshold?.seconds;
  const sure = [];
  if (Number.isFinite(threshold)) {
    const margin = figure(Math.abs(seconds - threshold));
    sure.push(t(seconds > threshold ? "sure.above" : "sure.below", { margin }));
  }
  if (Number.isFinite(share)) sure.push(t("sure.first", { chance: chance(share) }));
  return element(
    "div",
    { class: "gain" },
    element("p", { class: "label" }),
    element(
      "div",
      { class: "row" },
      element("p", { class: "number" }, figure(seconds), element("span", {}, ` ${t("time.second")}`)),
      bar(seconds, threshold ?? null),
    ),
    element("p", { class: "sure" }, sure.join(t("space"))),
  );
}

/** The expected gain as a bar, the threshold as a line across it. */
function bar(gain, threshold) {
  const [low, high] = [Math.min(0, threshold ?? 0), Math.max(gain, threshold ?? 0, 1)];
  const at = (seconds) => `${2 + (96 * (seconds - low)) / (high - low)}%`;
  const parts = [
    svg("rect", { class: "gain", x: at(0), y: 2, width: `${(96 * gain) / (high - low)}%`, height: 20 }),
    svg("line", { class: "axis", x1: 0, x2: "100%", y1: 22, y2: 22 }),
  ];
  const label = threshold === null ? "" : `${t("facts.threshold")} ${t("time.seconds", { seconds: figure(threshold) })}`;
  if (threshold !== null) {
    const share = (threshold - low) / (high - low);
    const anchor = share < 0.3 ? "start" : share > 0.7 ? "end" : "middle";
    parts.push(svg("line", { class: "limit", x1: at(threshold), x2: at(threshold), y1: 0, y2: 26 }));
    parts.push(svg("text", { x: at(threshold), y: 40, "text-anchor": anchor }, label));
  }
  const words = `${t("facts.gain")} ${t("time.seconds", { seconds: figure(gain) })}. ${label}`;
  return svg("svg", { class: "bar-of-gain", role: "img", "aria-label": words }, ...parts);
}

function ages({ made_with: { ages: all } }) {
  if (!Object.values(all).some(Number.isFinite)) return [];
  return ["traffic", "weather", "units"].map((source) => {
    const seconds = all[`${source}_s`];
    const value = Number.isFinite(seconds)
      ? element("dd", { "data-age": seconds })
      : element("dd", {}, t("facts.age_unknown"));
    return element("div", {}, element("dt", {}, t(`facts.${source}`)), value);
  });
}
