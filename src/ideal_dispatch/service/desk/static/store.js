// What the desk knows, and which call it shows.

const KEPT = 100;

const askedAt = (advice) => Date.parse(advice.asked_at ?? advice.created_at);

/** The one asked for last counts, also where two workers answered the other way round. */
const isLater = (a, b) => (askedAt(a) - askedAt(b) || a.revision - b.revision) > 0;

export class Store {
  advices = new Map(); // by id
  city = null;
  simulated = { left: 0 }; // calls still to come
  health = null;
  units = new Map(); // by depot
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

  /** The latest revision for a call. */
  newest(callId) {
    let latest = null;
    for (const advice of this.advices.values()) {
      if (advice.call_id === callId && (!latest || isLater(advice, latest))) latest = advice;
    }
    return latest;
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
