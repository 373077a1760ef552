// The expected gain as a bar, the best case as a bracket, the threshold as a line across both.

import { svg } from "./elements.js";
import { figure } from "./format.js";
import { t } from "./language.js";

const MARGIN = 3; // percent of the width, at both ends

/** A graphic for an advice against its threshold. What lies below zero is left to words. */
export function intervalGraphic(advice) {
  const gain = advice.gain_s ?? null;
  const threshold = advice.threshold?.seconds ?? null;
  const { lower_s: lower = null, upper_s: upper = null } = advice.gap ?? {};
  const least = Math.min(0, threshold ?? 0);
  const most = Math.max(gain ?? 0, lower ?? 0, upper ?? 0, threshold ?? 0, least + 1);
  const at = (seconds) => MARGIN + ((100 - 2 * MARGIN) * (Math.max(seconds, least) - least)) / (most - least);
  const line = (kind, x1, x2, y1, y2) =>
    svg("line", { class: kind, x1: `${x1}%`, x2: `${x2}%`, y1, y2 });

  const parts = [line("axis", 0, 100, 49, 49)];
  const highest = upper ?? (lower === null ? null : most);
  if (highest !== null && highest > 0) {
    const [from, to] = [at(lower), at(highest)];
    parts.push(line("best", from, to, 20, 20), line("best", from, from, 15, 25));
    if (upper !== null) parts.push(line("best", to, to, 15, 25));
    parts.push(word(t("facts.interval"), (from + to) / 2, 11));
  }
  if (gain !== null) {
    const [x, width] = [at(0), at(gain) - at(0)];
    parts.push(svg("rect", { class: "gain", x: `${x}%`, y: 27, width: `${width}%`, height: 22 }));
  }
  if (threshold !== null) {
    const x = at(threshold);
    const label = `${t("facts.threshold")} ${t("time.seconds", { seconds: figure(threshold) })}`;
    parts.push(line("limit", x, x, 23, 54), word(label, x, 68, "limit-word"));
  }
  if (threshold === null || at(threshold) > 45) parts.push(word("0", at(0), 68));

  const said = (seconds) => (seconds === null ? "–" : figure(seconds));
  const values = {
    gain: said(gain),
    lower: said(lower),
    upper: said(upper),
    threshold: said(threshold),
  };
  const label = { role: "img", "aria-label": t("sure.graphic", values) };
  return svg("svg", { class: "interval", ...label }, ...parts);
}

/** A word at a place, kept inside the graphic at both ends. */
function word(text, percent, y, kind = null) {
  const anchor = percent < 28 ? "start" : percent > 72 ? "end" : "middle";
  return svg("text", { class: kind, x: `${percent}%`, y, "text-anchor": anchor }, text);
}
