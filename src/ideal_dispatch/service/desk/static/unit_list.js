// All units in a table, for whoever has no mouse to point with, or no map.

import { byId, element } from "./elements.js";
import { lost, promise } from "./fleet.js";
import { age } from "./format.js";
import { t } from "./language.js";

const COLUMNS = ["unit", "status", "depot", "call", "seen"];

export function showUnits(store, now) {
  drawUnitList(store, now);
  byId("units-dialog").showModal();
}

/** Draw it while it is open: units go on meanwhile. */
export function drawUnitList({ fleet }, now) {
  const units = [...fleet.units.values()].sort(
    (a, b) => b.free - a.free || a.depot.localeCompare(b.depot) || a.id.localeCompare(b.id, "en", { numeric: true }),
  );
  byId("units-head").replaceChildren(
    ...COLUMNS.map((name) => element("th", { scope: "col" }, t(`units.${name}`))),
  );
  byId("units-rows").replaceChildren(...units.map((unit) => row(unit, now)));
}

function row(unit, now) {
  const promised = promise(unit, now);
  const call = promised ? t("unit.promised", { call: promised.call_id }) : (unit.call_id ?? "");
  const seen = unit.position ? age((now - Date.parse(unit.position.at)) / 1000) : "";
  const cells = [t(`unit.${unit.status}`), unit.depot, call].map((text) =>
    element("td", {}, element("bdi", {}, text)),
  );
  return element(
    "tr",
    { "data-free": unit.free && !promised ? "yes" : null },
    element("th", { scope: "row" }, element("bdi", {}, unit.id)),
    ...cells,
    element("td", { "data-old": lost(unit) ? "yes" : null }, seen),
  );
}
