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

/** Statuses as their marks, then what surrounds any of them. */
function rows(wanted, made = stamps()) {
  const found = STATUSES.filter(wanted).map((status) => item(made.mark(status, false, false), t(`unit.${status}`)));
  if (wanted("promised")) found.push(item(made.mark("available", false, true), t("symbols.promised")));
  if (wanted("stale")) found.push(item(made.mark("available", true, false), t("symbols.stale")));
  return found;
}

/** What is in sight, after what the legend always has. */
export const drawLegend = (marks) => byId("legend-units").replaceChildren(...rows((one) => marks.has(one)));

export const drawSymbols = () => byId("symbols").replaceChildren(...rows(() => true));
