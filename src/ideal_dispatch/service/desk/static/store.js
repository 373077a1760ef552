// What the desk knows, and which call it shows.

import { Fleet } from "./fleet.js";

const KEPT = 100;

const askedAt = (advice) => Date.parse(advice.asked_at ?? advice.created_at);

/** The one asked for last counts, also where two workers answered the other way round. */
const isLater = (a, b) => (askedAt(a) - askedAt(b) || a.revision - b.revision) > 0;

export class Store {
  advices = new Map(); // by id
  city = null;
  simulated = { left: 0 }; // calls still to come
  health = null;
  units = new Map(); // by depot, where nobody tells of single units
  fleet = new Fleet();
  dispatches = new Map(); // by the id of their recommendation
  closures = [];
  role = null; // of whoever signed in
  online = false;
  lostAt = null;
  selected = null;
  follow = false;
  guardedUntil = 0;

  /** Newest first. */
  get list() {
    return [...this.advices.values()].sort(
      (a, b) => Date.parse(b.created_at) - Date.parse(a.created_at) || b.revision - a.revision,
    );
  }

  get guarded() {
    return performance.now() < this.guardedUntil;
  }

  get shown() {
    return this.advices.get(this.selected) ?? null;
  }

  /** Can calls be invented here? A city with units lives by calls that are told. */
  get invents() {
    return Boolean(this.city?.simulated) && (!this.fleet.known || this.simulated.left > 0);
  }

  /** May whoever signed in answer an advice? */
  get mayAnswer() {
    return ["dispatcher", "admin"].includes(this.role);
  }

  /** May whoever signed in close roads? */
  get mayClose() {
    return ["cad", "dispatcher", "admin"].includes(this.role);
  }

  /** The latest revision for a call. */
  newest(callId) {
    let latest = null;
    for (const advice of this.advices.values()) {
      if (advice.call_id === callId && (!latest || isLater(advice, latest))) latest = advice;
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
      if (old.id !== this.selected) this.advices.delete(old.id);
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
