// What follows from an advice, whatever the page looks like.

/** What must exceed the threshold, in seconds; null where the service computed nothing. */
export const score = (advice) => advice.gain_s ?? advice.gap?.lower_s ?? null;

/** Would a second go at this threshold? */
export const wouldSend = (advice, thresholdS) => score(advice) > thresholdS;

/** Why this advice must not be used, or null where it may be. */
export function oldBecause(advice, store, now) {
  if (!store.online) return "offline";
  if (store.newest(advice.call_id) !== advice) return "superseded";
  return Date.parse(advice.expires_at) <= now ? "expired" : null;
}

/** May it be accepted or overridden now? Whoever pressed the wrong key may answer again. */
export const answerable = (advice, store, now) =>
  advice.decision !== "no_advice" && oldBecause(advice, store, now) === null;

/** Does it wait for an answer? */
export const open = (advice, store, now) => !advice.response && answerable(advice, store, now);

/** Names of a route's roads in driving order, each once. */
export function roads(route) {
  const names = (route?.roads ?? []).map((road) => (typeof road === "string" ? road : road.name));
  return [...new Set(names.filter(Boolean))];
}

const line = (route) => route?.geojson?.coordinates ?? [];

/** What the map shows of an advice: both ways, the stretches that they share, the incident. */
export function scene(advice) {
  if (!advice) return { primary: [], second: [], shared: [], incident: null };
  const [primary, second] = [line(advice.primary?.route), line(advice.second?.route)];
  const { lon, lat } = advice.location ?? {};
  const incident = Number.isFinite(lon) && Number.isFinite(lat) ? [lon, lat] : null;
  return { primary, second, shared: sharedStretches(primary, second), incident };
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
