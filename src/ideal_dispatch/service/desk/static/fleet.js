// The units of the fleet as the service tells of them, and what follows from that.

import { age } from "./format.js";
import { t } from "./language.js";

export class Fleet {
  units = new Map(); // by id

  replaceAll(list) {
    this.units = new Map(list.map((unit) => [unit.id, unit]));
  }

  /** News of one unit or of many; one that is gone is forgotten. */
  tell(news) {
    for (const unit of [news].flat()) {
      if (unit.gone) this.units.delete(unit.id);
      else this.units.set(unit.id, unit);
    }
  }

  get known() {
    return this.units.size > 0;
  }

  /** Units that the next call can have. */
  free(now) {
    return [...this.units.values()].filter((unit) => unit.free && !promise(unit, now));
  }

  /** What stands at a station and could go, in the form of the counts of a depot. */
  station(name, now) {
    const here = [...this.units.values()].filter(
      (unit) => unit.free && unit.station === name && waits(unit),
    );
    const promised = here.map((unit) => promise(unit, now)).filter(Boolean);
    return { units: here.length, promised, ids: here.map((unit) => unit.id).sort() };
  }
}

/** The promise of a unit, while it lasts. */
export const promise = ({ promised }, now) =>
  promised && Date.parse(promised.until) > now ? promised : null;

/** Does it stand at its station by its own account? The square there counts it. */
export const waits = (unit) => unit.status === "at_station";

/** Is its place not known? It is shown at its station, hollow. */
export const lost = (unit) => !waits(unit) && (unit.stale || !unit.position);

/** A unit in a few lines, for whoever points at it. */
export function unitLines(unit, now) {
  const lines = [`${unit.id} · ${t(`unit.${unit.status}`)}`, unit.station];
  if (unit.call_id) lines.push(t("banner.call", { call: unit.call_id }));
  const promised = promise(unit, now);
  if (promised) lines.push(t("unit.promised", { call: promised.call_id }));
  const seconds = unit.position ? (now - Date.parse(unit.position.at)) / 1000 : null;
  if (lost(unit)) {
    lines.push(seconds === null ? t("unit.nowhere") : t("unit.stale", { age: age(seconds) }));
  } else if (seconds !== null) {
    lines.push(t("unit.seen", { age: age(seconds) }));
  }
  return lines;
}
