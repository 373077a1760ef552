// Why: the roads that differ, seconds by road, survival; and what another threshold would say.

import { score, wouldSend } from "./advice.js";
import { byId, element, svg, write } from "./elements.js";
import { drive, figure, kilometres } from "./format.js";
import { language, t } from "./language.js";

const ROADS = 6;
const LONGEST = 4; // of those that only one drives

export function drawWhy(advice) {
  byId("reasons-why").replaceChildren(...(advice ? of(advice) : [element("p", {}, t("why.nothing"))]));
}

function of(advice) {
  const blocks = [];
  if (advice.second && advice.explanation.second_only) blocks.push(block("why.differ", ...differing(advice)));
  const byRoad = (advice.explanation?.roads ?? []).filter((road) => Math.abs(road.seconds) >= 0.5);
  if (byRoad.length) {
    const whose = advice.explanation.seconds_from ?? "unknown"; // an advice of an older service
    blocks.push(block(`why.seconds_${whose}`, seconds(byRoad.slice(0, ROADS))));
  }
  const other = advice.explanation?.other_way;
  if (other) {
    const roads = other.roads.join(", ") || t("facts.unnamed");
    blocks.push(element("p", { class: "aside" }, t("why.other_way", { depot: other.depot, roads })));
  }
  if (advice.decision !== "no_advice") blocks.push(numbers(advice));
  blocks.push(small(advice));
  return blocks;
}

const block = (title, ...content) =>
  element("section", { class: "block" }, element("h3", {}, t(title)), ...content);

/** What only one of the two drives, as the service found it edge by edge: names alone would not tell. */
function differing({ explanation, second }) {
  const { primary_only: first, second_only: other, shared_m: shared } = explanation;
  const column = (kind, parts) =>
    element(
      "div",
      { class: `column ${kind}` },
      element("h4", {}, element("i", { class: `key ${kind}` }), t(`why.${kind}_only_roads`)),
      element("p", {}, names(parts) || "–"),
    );
  const percent = Math.round(100 * second.overlap);
  return [
    first.length || other.length
      ? element("div", { class: "columns" }, column("primary", first), column("second", other))
      : element("p", {}, t("why.same_roads")),
    element("p", { class: "aside" }, t("why.shared", { percent, length: kilometres(shared) })),
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

function numbers(advice) {
  const rows = [];
  const { primary_s: first, second_s: second } = advice.nominal ?? {};
  const times = [];
  if (Number.isFinite(first)) times.push(t("why.primary_s", { time: drive(first) }));
  if (Number.isFinite(second)) times.push(t("why.second_s", { time: drive(second) }));
  if (times.length) rows.push(["why.times", times.join(", ")]);
  if (Number.isFinite(advice.gain_survival)) {
    const points = (100 * advice.gain_survival).toPrecision(2);
    rows.push(["why.survival", t("why.survival_points", { points: `+${points}` })]);
  }
  if (advice.threshold) rows.push(["why.threshold", thresholdWords(advice.threshold)]);
  if (Number.isFinite(advice.cost?.hold_s)) {
    const lives = String(Number((1e4 * advice.cost.lives).toPrecision(2)));
    rows.push(["why.cost", t("why.cost_lives", { lives, minutes: figure(advice.cost.hold_s / 60) })]);
  }
  const list = rows.map(([key, text]) =>
    element("div", {}, element("dt", {}, t(key)), element("dd", {}, text)),
  );
  return element("dl", { class: "numbers" }, ...list);
}

/** The service explains its threshold in English; other languages get the figure. */
function thresholdWords({ seconds, source, words }) {
  if (language() === "en" || !Number.isFinite(seconds)) return words;
  return `${t("time.seconds", { seconds: figure(seconds) })} ${t(`why.from_${source}`)}`;
}

function small(advice) {
  const { text } = advice.explanation ?? {};
  const versions = Object.entries(advice.versions ?? {})
    .map(([part, value]) => `${part} ${String(value).slice(0, 12)}`)
    .join(" · ");
  const latency = Number.isFinite(advice.latency_ms)
    ? t("why.latency", { ms: advice.latency_ms.toFixed(0) })
    : "";
  return element(
    "details",
    { class: "small" },
    element("summary", {}, t("why.server_words")),
    text ? element("p", { class: "server", lang: language() === "en" ? null : "en" }, text) : null,
    element("p", {}, [latency, versions].filter(Boolean).join(" · ")),
  );
}

// --- what if ---------------------------------------------------------------------

export function startWhatIf(shown) {
  byId("what-if-value").addEventListener("input", ({ target }) => {
    tell(shown(), Number(target.value));
  });
  byId("what-if-reset").addEventListener("click", () => drawWhatIf(shown()));
}

/** Put the slider back to the advice's own threshold. */
export function drawWhatIf(advice) {
  const value = advice ? score(advice) : null;
  const box = byId("what-if");
  box.hidden = !Number.isFinite(value) || advice.decision === "no_advice";
  if (box.hidden) return;
  const slider = byId("what-if-value");
  const own = advice.threshold?.seconds ?? 0;
  slider.max = Math.ceil(Math.max(20, 1.5 * value, 1.5 * own) / 10) * 10;
  slider.value = own;
  tell(advice, own); // the slider rounds
}

function tell(advice, thresholdS) {
  const sends = wouldSend(advice, thresholdS);
  const seconds = figure(thresholdS);
  const label = t("what_if.seconds", { seconds });
  byId("what-if").dataset.sends = sends ? "yes" : "no";
  byId("what-if-value").setAttribute("aria-valuetext", label);
  write(byId("what-if-seconds"), label);
  write(byId("what-if-words"), t(sends ? "what_if.send" : "what_if.stay", { seconds }));
}
