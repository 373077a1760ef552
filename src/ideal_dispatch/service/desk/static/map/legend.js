// What the marks on the map mean: in the legend those that are in sight, beside the keys all.

import { byId, element } from "../elements.js";
import { t } from "../language.js";
import { theme } from "../theme.js";
import { look } from "./map.js";
import { SIZE, STATUSES, Stamps } from "./marks.js";

const stamps = () => new Stamps({ ...look(theme()), font: getComputedStyle(document.body).fontFamily }, 2);

function item(stamp, words) {
  stamp.style.width = stamp.style.height = `${SIZE}px`;
  return element("li", {}, stamp, element("span", {}, words));
}

/** The marks of units in these statuses, after what the legend always has. */
export function drawLegend(statuses) {
  const made = stamps();
  const shown = STATUSES.filter((status) => statuses.has(status));
  byId("legend-units").replaceChildren(
    ...shown.map((status) => item(made.mark(status, false, false), t(`unit.${status}`))),
  );
}

export function drawSymbols() {
  const made = stamps();
  const rows = STATUSES.map((status) => item(made.mark(status, false, false), t(`unit.${status}`)));
  rows.push(item(made.mark("available", false, true), t("symbols.promised")));
  rows.push(item(made.mark("available", true, false), t("symbols.stale")));
  byId("symbols").replaceChildren(...rows);
}
