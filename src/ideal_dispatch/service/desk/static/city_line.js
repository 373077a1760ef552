// The city in one quiet line: how many units are free, and how far the next call is from help.

import { byId, write } from "./elements.js";
import { figure } from "./format.js";
import { t } from "./language.js";

export function drawCityLine({ fleet, city }, now) {
  const free = fleet.free(now).length;
  byId("city-line").hidden = !city;
  byId("city-line").disabled = !fleet.known;
  write(byId("units-free"), fleet.known ? t("city.free", { free, all: fleet.units.size }) : t("depot.unknown"));
  write(byId("next-call"), !fleet.known ? "" : free ? nextCall(city) : t("city.none"));
}

function nextCall(city) {
  if (!city?.cover) return "";
  const { median_s: half, p90_s: most } = city.cover;
  if (half === null) return t("city.most_cut_off"); // null: closed roads cut off so many
  if (most === null) return t("city.some_cut_off", { half: figure(half / 60) });
  return t("city.cover", { half: figure(half / 60), most: figure(most / 60) });
}
