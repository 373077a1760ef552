// What follows from an advice, whatever the page looks like.

import { promise } from "./fleet.js";
import { knows, t } from "./language.js";

/** Would a second go at this threshold? */
export const wouldSend = (advice, thresholdS) => advice.gain_s > thresholdS;

/**
 * What an advice is good for: it waits for an answer (`open`), was answered (`accepted`, `overridden`,
 * `running`, `ended`), or must not be used any more (`expired`, `superseded`, `offline`, `lost`).
 */
export function standing(advice, store, now) {
  if (!store.online) return "offline";
  const dispatch = store.dispatches.get(advice.id);
  if (dispatch) return dispatch.state === "ended" ? "ended" : "running";
  if (["running", "ended"].includes(advice.state)) return advice.state;
  if (store.newest(advice.call_id) !== advice || advice.state === "superseded") return "superseded";
  if (advice.state !== "open") return advice.state;
  if (Date.parse(advice.expires_at) <= now) return "expired";
  return losses(advice, store, now).length ? "lost" : "open";
}

/** Units that an advice counts on and lost: as events said, or as the state of its second says. */
export function losses(advice, store, now) {
  const heard = store.losses.get(advice.id);
  const promised = advice.decision === "send_second" && !advice.simulated; // else nothing can be lost
  if (heard || !promised || !store.fleet.known) return heard ?? [];
  const unit = store.fleet.units.get(advice.second.unit);
  const other = unit && (promise(unit, now)?.call_id ?? unit.call_id ?? advice.call_id) !== advice.call_id;
  const why = !unit ? "gone" : unit.status === "out_of_service" ? "out_of_service" : other ? "on_call" : null;
  return why ? [{ unit: advice.second.unit, why }] : [];
}

/** Does it wait for an answer that may be given now? */
export const open = (advice, store, now) =>
  advice.decision !== "no_advice" && standing(advice, store, now) === "open";

/** Does its second go, or would it if somebody accepted now? The way of one that does not is dim. */
export function secondGoes(advice, store, now) {
  if (advice?.decision !== "send_second") return false;
  const goes = (store.dispatches.get(advice.id)?.state ?? "running") === "running";
  return goes && ["open", "accepted", "running"].includes(standing(advice, store, now));
}

/** The advice in words; where there is none, its reason if that fits in a few. */
export function verdictWords({ decision, degraded }) {
  const reason = `reason.${degraded[0]?.code}`;
  if (decision !== "no_advice" || !knows(reason)) return t(`verdict.${decision}`);
  return t("verdict.no_advice_for", { reason: t(reason) });
}

/**
 * When a unit arrives, in whole seconds from the moment of the advice: the primary's are cut, the
 * second's rounded up, so that the difference that people see is never more than the expected gain.
 */
export function arrival(advice, role) {
  const found = advice[role]?.arrival;
  if (!found) return null;
  const total = role === "primary" ? Math.floor(found.expected_s) : Math.ceil(found.expected_s);
  const turnout = Math.min(total, Math.round(found.turnout_s));
  return { at: Date.parse(advice.asked_at) + 1000 * total, total, turnout };
}

/** What is left of an arrival: first of the turnout, then of the drive. */
export function left({ at, total, turnout }, now) {
  const rest = Math.min(Math.max(0, Math.ceil((at - now) / 1000)), total);
  const turnoutLeft = Math.max(0, turnout - (total - rest));
  return { total: rest, turnout: turnoutLeft, drive: rest - turnoutLeft };
}

const line = (one) => one?.route?.geojson?.coordinates ?? [];

/** What the map shows of an advice: both ways, the stretches that they share, the incident. */
export function scene(advice) {
  if (!advice) return { primary: [], second: [], shared: [], incident: null };
  const [primary, second] = [line(advice.primary), line(advice.second)];
  const { lon, lat } = advice.location;
  return { primary, second, shared: sharedStretches(primary, second), incident: [lon, lat] };
}

/** Runs of coordinates that both lines drive in the same direction. */
function sharedStretches(first, second) {
  const key = (a, b) => `${a} ${b}`;
  const pieces = new Set(first.slice(1).map((point, i) => key(first[i], point)));
  const stretches = [];
  let run = null;
  for (let i = 1; i < second.length; i += 1) {
    if (!pieces.has(key(second[i - 1], second[i]))) {
      run = null;
    } else if (run) {
      run.push(second[i]);
    } else {
      run = [second[i - 1], second[i]];
      stretches.push(run);
    }
  }
  return stretches;
}
