// The advice in facts: who, by which roads, how much sooner, how sure, on data how old.

import { roads, score } from "./advice.js";
import { byId, element } from "./elements.js";
import { age, drive, kilometres, figure } from "./format.js";
import { intervalGraphic } from "./interval.js";
import { t } from "./language.js";
import { line } from "./remarks.js";

const ROADS = 4;

export function drawFacts(advice, invents) {
  const hints = invents ? ["facts.none", "facts.try"] : ["facts.none"];
  const parts = advice ? of(advice) : hints.map((key) => element("p", { class: "plain" }, t(key)));
  byId("facts").replaceChildren(...parts.filter(Boolean));
  byId("ages").replaceChildren(...(advice ? ages(advice) : []));
}

/** Ages grow while an advice is looked at. */
export function tickAges(advice, now) {
  const since = advice ? Math.max(0, now - Date.parse(advice.created_at)) / 1000 : 0;
  for (const node of document.querySelectorAll("[data-age]")) {
    node.textContent = age(Number(node.dataset.age) + since);
  }
}

function of(advice) {
  if (advice.decision === "no_advice") {
    const reasons = element("ul", { class: "degraded" }, ...advice.degraded.map(line));
    return [reasons, element("p", { class: "plain" }, t("facts.no_advice"))];
  }
  const [first, then] =
    advice.decision === "send_second" ? ["second", "primary"] : ["primary", "second"];
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
  const same = role === "second" && one.depot === advice.primary?.depot ? "_same" : "";
  const label = t((stays ? "facts.second_stays" : `facts.${role}_from${router}`) + same);
  const seconds = advice.nominal?.[`${role}_s`] ?? one.route?.quoted_s;
  const way = [];
  if (Number.isFinite(seconds)) way.push(drive(seconds));
  if (Number.isFinite(one.route?.length_m)) way.push(kilometres(one.route.length_m));
  return element(
    "div",
    { class: kind },
    element("p", { class: "label" }, label),
    element("p", { class: "depot" }, ...name(one)),
    element("p", { class: "way" }, roadWords(one.route)),
    element("p", { class: "drive" }, way.join(" · ")),
  );
}

/** A unit that is known by its id comes first: that is whom a dispatcher calls. */
function name({ unit, units, depot, start }) {
  if (!unit) {
    const free = Number.isFinite(units) ? t("facts.free", { units }) : "";
    return [depot, " ", element("span", { class: "unit" }, free)];
  }
  const where = start?.on_road ? t("facts.on_road", { depot }) : depot;
  return [unit, " ", element("span", { class: "unit" }, where)];
}

function roadWords(route) {
  if (route && !route.edges?.length && !route.length_m) return t("facts.there");
  const names = roads(route);
  const more = names.length > ROADS ? ` → … +${names.length - ROADS}` : "";
  return `${t("facts.by")} ${names.slice(0, ROADS).join(" → ") || t("facts.unnamed")}${more}`;
}

function gain(advice) {
  const seconds = score(advice);
  const number = element(
    "p",
    { class: "number" },
    Number.isFinite(seconds) ? figure(seconds) : "–",
    element("span", {}, ` ${t("time.seconds", { seconds: "" }).trim()}`),
  );
  const threshold = advice.threshold?.seconds;
  return element(
    "div",
    { class: "gain" },
    element("p", { class: "label" }, t("facts.gain")),
    element("div", { class: "row" }, number, intervalGraphic(advice)),
    element("p", { class: "sure" }, margin(seconds, threshold) + t("space") + bestCase(advice.gap)),
  );
}

function margin(seconds, threshold) {
  if (!Number.isFinite(threshold)) return t("sure.always");
  if (!Number.isFinite(seconds)) return "";
  const values = { margin: figure(Math.abs(seconds - threshold)) };
  return t(seconds > threshold ? "sure.sentence" : "sure.below", values);
}

function bestCase(gap) {
  if (!Number.isFinite(gap?.lower_s)) return t("sure.none");
  const values = { lower: figure(Math.max(0, gap.lower_s)), upper: figure(gap.upper_s ?? NaN) };
  if (Number.isFinite(gap.upper_s) && Math.abs(gap.upper_s) < 0.5) return t("sure.no_better");
  if (gap.upper_s < 0) return t("sure.later", { seconds: figure(-gap.upper_s) });
  if (!Number.isFinite(gap.upper_s)) return t("sure.at_least", values);
  return t(values.lower === values.upper ? "sure.exact" : "sure.between", values);
}

function ages(advice) {
  if (!Object.values(advice.data_ages ?? {}).some(Number.isFinite)) return [];
  const cells = ["traffic", "weather", "units"].map((source) => {
    const seconds = advice.data_ages?.[`${source}_s`];
    const value = Number.isFinite(seconds)
      ? element("dd", { "data-age": seconds })
      : element("dd", {}, t("facts.age_unknown"));
    return element("div", {}, element("dt", {}, t(`facts.${source}`)), value);
  });
  return cells;
}
