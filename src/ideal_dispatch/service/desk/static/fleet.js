// The units as the service reports them, and what follows from that.

import { age } from "./format.js";
import { isolated, t } from "./language.js";

export class Fleet {
  units = new Map(); // by id

  replaceAll(list) {
    this.units = new Map(list.map((unit) => [unit.id, unit]));
  }

  /** News of units, or that one is gone. What a resumed stream repeats is no news. */
  take(news) {
    for (const unit of [news].flat()) {
      if (unit.gone) this.units.delete(unit.id);
      else if (!(this.units.get(unit.id)?.told_at > unit.told_at)) this.units.set(unit.id, unit);
    }
  }

  /** Was any unit ever reported? */
  get known() {
    return this.units.size > 0;
  }

  /** Units that the next call can have. */
  free(now) {
    return [...this.units.values()].filter((unit) => unit.free && !promise(unit, now));
  }

  /** What stands at a depot: how many are free, whose ids they have, and what is promised to whom. */
  depot(name, now) {
    const here = [...this.units.values()].filter(
      (unit) => unit.depot === name && (waits(unit) || (unit.anonymous && promise(unit, now))),
    );
    const promised = here.map((unit) => promise(unit, now)).filter(Boolean);
    const ids = here.filter((unit) => !unit.anonymous && !promise(unit, now)).map(({ id }) => id);
    return { known: this.known, free: here.length - promised.length, promised, ids: ids.sort() };
  }
}

/** The promise of a unit, while it lasts. */
export const promise = ({ promised }, now) =>
  promised && Date.parse(promised.until) > now ? promised : null;

/** Does it stand at its depot? The square there counts it. */
export const waits = (unit) => unit.status === "at_station";

/** Is its place not known? It is shown at its depot, hollow. */
export const lost = (unit) => !waits(unit) && (unit.stale || !unit.position);

/** One of a count has no name of its own: its id is the depot's with a number. */
export const anonymous = ({ unit, depot }) => !unit || unit.startsWith(`${depot} #`);

/** Whom a dispatcher calls: the unit, or its depot where only numbers are known. */
export const nameOf = (one) => (anonymous(one) ? one.depot : one.unit);

/** The numbers of a depot in words: 2 free, 1 promised. */
export function countWords({ known, free, promised }) {
  if (!known) return t("depot.unknown");
  const words = t("depot.free", { free });
  return promised.length ? `${words}${t("depot.promised", { promised: promised.length })}` : words;
}

/** A depot in a few lines, for whoever points at it. */
export function depotLines({ name, ids, promised, ...counts }) {
  const lines = [name, countWords({ promised, ...counts })];
  if (ids.length) lines.push(ids.map(isolated).join(", "));
  if (promised.length) {
    const calls = [...new Set(promised.map((one) => isolated(one.call_id)))].join(", ");
    lines.push(t("unit.promised", { call: calls }));
  }
  return lines;
}

/** A unit in a few lines, for whoever points at it. */
export function unitLines(unit, now) {
  const lines = [`${isolated(unit.id)} · ${t(`unit.${unit.status}`)}`, unit.depot];
  if (unit.call_id) lines.push(t("banner.call", { call: unit.call_id }));
  const promised = promise(unit, now);
  if (promised) lines.push(t("unit.promised", { call: promised.call_id }));
  const seen = unit.position && age((now - Date.parse(unit.position.at)) / 1000);
  if (lost(unit)) lines.push(seen ? t("unit.stale", { age: seen }) : t("unit.nowhere"));
  else if (seen) lines.push(t("unit.seen", { age: seen }));
  return lines;
}
