// Why: the roads that differ, seconds by road, survival; and what another threshold would say.

import { wouldSend } from "./advice.js";
import { byId, element, svg, write } from "./elements.js";
import { anonymous } from "./fleet.js";
import { clockTime, figure, kilometres, lives } from "./format.js";
import { language, t } from "./language.js";

const ROADS = 5;
const LONGEST = 3; // of those that only one drives

export function drawWhy(advice) {
  const explained = advice && advice.decision !== "no_advice";
  byId("reasons-why").replaceChildren(...(explained ? of(advice) : [element("p", {}, t("why.nothing"))]));
  byId("details").replaceChildren(...(advice ? details(advice) : []));
}

function of(advice) {
  const { second, why } = advice;
  const blocks = [];
  if (second) blocks.push(block(t("why.differ"), ...differing(advice)));
  const byRoad = why.roads.filter((road) => Math.abs(road.seconds) >= 0.5);
  if (byRoad.length) {
    blocks.push(block(t(`why.seconds_${why.seconds_from ?? "unknown"}`), seconds(byRoad.slice(0, ROADS))));
  }
  blocks.push(numbers(advice));
  return blocks;
}

const block = (title, ...content) =>
  element("section", { class: "block" }, element("h3", {}, title), ...content);

/** What only one of the two drives, as the service found it edge by edge: names alone would not tell. */
function differing({ why, second }) {
  const { primary_only: first, second_only: other, shared_m: shared } = why;
  const column = (kind, parts) =>
    element(
      "p",
      { class: "column" },
      element("i", { class: `key ${kind}`, role: "img", "aria-label": t(`map.${kind}`) }),
      names(parts) || "–",
    );
  const percent = Math.round(100 * second.overlap);
  return [
    ...(first.length || other.length
      ? [column("primary", first), column("second", other)]
      : [element("p", {}, t("why.same_roads"))]),
    element("p", { class: "aside" }, t("why.shared", { percent, length: kilometres(shared ?? 0) })),
  ];
}

function names(parts) {
  const more = parts.length > LONGEST ? `, … +${parts.length - LONGEST}` : "";
  return parts.slice(0, LONGEST).map((part) => part.name).join(", ") + more;
}

function seconds(list) {
  const most = Math.max(...list.map((road) => Math.abs(road.seconds)));
  const rows = list.map(({ name, seconds: value }) => {
    const width = `${(100 * Math.abs(value)) / most}%`;
    const kind = value > 0 ? "avoids" : "takes";
    const bar = svg("svg", { class: `share ${kind}`, "aria-hidden": "true" });
    bar.append(svg("rect", { width, height: "100%" }));
    const words = t(`why.${kind}`, { seconds: figure(Math.abs(value)) });
    return element("div", {}, element("dt", {}, name), element("dd", {}, bar, element("span", {}, words)));
  });
  return element("dl", { class: "by-road" }, ...rows);
}

function numbers({ gain_survival: survival, why: { cost, gap } }) {
  const rows = [];
  if (Number.isFinite(survival)) {
    const points = survival < 1e-4 ? "< 0.01" : `+${(100 * survival).toPrecision(2)}`;
    rows.push(["survival", t("why.survival_points", { points })]);
  }
  if (Number.isFinite(cost?.lives)) {
    const away = Number.isFinite(cost.hold_s) ? t("why.away", { minutes: figure(cost.hold_s / 60) }) : "";
    rows.push(["cost", t("why.cost_lives", { lives: lives(cost.lives) }) + away]);
  }
  if (gap) rows.push(["gap", gapWords(gap)]);
  const list = rows.map(([key, text]) =>
    element("div", { "data-why": key }, element("dt", {}, t(`why.${key}`)), element("dd", {}, text)),
  );
  return element("dl", { class: "numbers" }, ...list);
}

/** How much sooner the scenario set of drives allows the second to be: no forecast of this call. */
function gapWords({ lower_s: lower, upper_s: upper }) {
  if (upper <= 0) return t("why.gap_none");
  const values = { lower: figure(lower), upper: figure(upper ?? NaN) };
  if (!Number.isFinite(upper)) return t("why.gap_least", values);
  return t(values.lower === values.upper ? "why.gap_exact" : "why.gap_between", values);
}

function details(advice) {
  const { why, made_with: made, considered, asked_at: asked } = advice;
  const lines = [];
  if (why.threshold) {
    const { source, words } = why.threshold;
    lines.push(element("p", {}, `${t(`why.from_${source}`)}: `, element("span", { lang: "en" }, words)));
  }
  if (why.other_way) {
    const roads = why.other_way.roads.join(", ") || t("facts.unnamed");
    lines.push(element("p", {}, t("why.other_way", { depot: why.other_way.depot, roads })));
  }
  const others = [...considered].sort((a, b) => a.arrival.expected_s - b.arrival.expected_s).map((one) => {
    const at = Date.parse(asked) + 1000 * one.arrival.expected_s;
    const who = anonymous(one) ? one.depot : t("unit.of", one);
    return element("li", {}, t("why.considered_at", { who, time: clockTime(at) }));
  });
  if (others.length) lines.push(element("p", {}, t("why.considered")), element("ul", {}, ...others));
  if (why.text) {
    lines.push(element("p", { class: "server", lang: language() === "en" ? null : "en" }, why.text));
  }
  return [...lines, element("p", {}, t("why.latency", { ms: made.latency_ms.toFixed(0) }))];
}

// --- what if ---------------------------------------------------------------------

export function startWhatIf(shown) {
  byId("what-if-value").addEventListener("input", ({ target }) => {
    preview(shown(), Number(target.value));
  });
  byId("what-if-reset").addEventListener("click", () => drawWhatIf(shown()));
  const more = byId("what-if").parentElement;
  more.addEventListener("toggle", () => more.open && more.scrollIntoView({ block: "start" }));
}

/** Put the slider back to the advice's own threshold. */
export function drawWhatIf(advice) {
  const box = byId("what-if");
  box.hidden = !Number.isFinite(advice?.gain_s) || advice.decision === "no_advice";
  if (box.hidden) return;
  const slider = byId("what-if-value");
  const own = advice.why.threshold?.seconds ?? 0;
  slider.max = Math.ceil(Math.max(20, 1.5 * advice.gain_s, 1.5 * own) / 10) * 10;
  slider.value = own;
  preview(advice, own); // the slider rounds
}

function preview(advice, thresholdS) {
  const sends = wouldSend(advice, thresholdS);
  const seconds = figure(thresholdS);
  byId("what-if").dataset.sends = sends ? "yes" : "no";
  byId("what-if-value").setAttribute("aria-valuetext", t("time.seconds", { seconds }));
  write(byId("what-if-words"), t(sends ? "what_if.send" : "what_if.stay", { seconds }));
}
