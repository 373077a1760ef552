// The service's time. A desk's own clock may be wrong by minutes, and a simulated one runs elsewhere.

const JITTER_MS = 1500; // of the way from the service to here: a countdown must not jump for it

let [base, start, speed] = [Date.now(), performance.now(), 1];

/** Milliseconds since 1970 by the service's clock. */
export const now = () => base + speed * (performance.now() - start);

/** Go by the clock that the service reports. */
export function useClock(clock) {
  const told = Date.parse(clock.now);
  if (clock.speed === speed && Math.abs(told - now()) < JITTER_MS * Math.max(speed, 1)) return;
  [base, start, speed] = [told, performance.now(), clock.speed];
}
