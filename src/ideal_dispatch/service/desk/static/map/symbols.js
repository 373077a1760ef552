// The symbols of units, explained beside the keys.

import { byId, element } from "../elements.js";
import { t } from "../language.js";
import { look } from "./map.js";
import { SIZE, STATUSES, Stamps } from "./marks.js";
import { theme } from "../theme.js";

export function drawSymbols() {
  const font = getComputedStyle(document.body).fontFamily;
  const stamps = new Stamps({ ...look(theme()), font }, 2);
  const rows = STATUSES.map((status) => [stamps.mark(status, false, false), t(`unit.${status}`)]);
  rows.push([stamps.mark("available", false, true), t("symbols.promised")]);
  rows.push([stamps.mark("available", true, false), t("symbols.stale")]);
  byId("symbols").replaceChildren(
    ...rows.map(([stamp, words]) => {
      stamp.style.width = stamp.style.height = `${SIZE}px`;
      return element("li", {}, stamp, element("span", {}, words));
    }),
  );
}
