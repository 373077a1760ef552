// What the desk knows, and which call it shows.

import { Fleet } from "./fleet.js";

const KEPT = 100;

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

  /** Can calls be invented here? A city that a player brings to life has calls of its own. */
  get invents() {
    return Boolean(this.city?.simulated);
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
    for (const old of this.list.slice(KEPT)) {
      if (old.id === this.selected) continue;
      this.advices.delete(old.id);
      this.losses.delete(old.id);
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
