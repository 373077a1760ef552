// What the desk knows, and which call it shows.

import { now } from "./clock.js";
import { Fleet } from "./fleet.js";

const KEPT = 100; // calls, and those with a dispatch that runs or ended within the hour
const ENDED_MS = 3_600_000;

/** Newest first: the one asked for last counts, also where two workers answered the other way round. */
const order = (a, b) => Date.parse(b.asked_at) - Date.parse(a.asked_at) || b.revision - a.revision;

export class Store {
  advices = new Map(); // by id
  city = null;
  simulated = { left: 0 }; // calls still to come
  health = null;
  fleet = new Fleet();
  dispatches = new Map(); // by the id of their recommendation
  losses = new Map(); // units that an advice lost to something else, by the id of the advice
  closures = [];
  role = null; // of whoever signed in
  online = false;
  lostAt = null;
  selected = null;
  follow = false;
  guardedUntil = 0;

  /** Newest first. */
  get list() {
    return [...this.advices.values()].sort(order);
  }

  get guarded() {
    return performance.now() < this.guardedUntil;
  }

  get shown() {
    return this.advices.get(this.selected) ?? null;
  }

  get mayAnswer() {
    return ["dispatcher", "admin"].includes(this.role);
  }

  get mayClose() {
    return ["cad", "dispatcher", "admin"].includes(this.role);
  }

  /** The latest revision for a call. */
  newest(callId) {
    let latest = null;
    for (const advice of this.advices.values()) {
      if (advice.call_id === callId && (!latest || order(advice, latest) < 0)) latest = advice;
    }
    return latest;
  }

  /** The dispatch of an advice, or of a newer or older one for the same call. */
  dispatchOf(advice) {
    if (!advice) return null;
    const own = this.dispatches.get(advice.id);
    if (own) return own;
    const all = [...this.dispatches.values()].filter((one) => one.call_id === advice.call_id);
    return all.sort((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at))[0] ?? null;
  }

  put(advice) {
    this.advices.set(advice.id, advice);
    for (const { id } of this.list.slice(KEPT)) {
      const { ended_at: ended } = this.dispatches.get(id) ?? {};
      if (id === this.selected || ended === null || now() - Date.parse(ended) < ENDED_MS) continue;
      for (const kept of [this.advices, this.dispatches, this.losses]) kept.delete(id);
    }
  }

  replaceAll(advices) {
    this.advices = new Map(advices.map((advice) => [advice.id, advice]));
    if (!this.shown) this.selected = this.list[0]?.id ?? null;
  }

  /** The advice `step` places below the one shown; above where negative. */
  neighbour(step) {
    const list = this.list;
    const at = list.findIndex((advice) => advice.id === this.selected);
    return list[Math.min(Math.max(at + step, 0), list.length - 1)] ?? null;
  }
}
