// The service's time. A desk's own clock may be wrong by minutes, and expiry must not be.

let serverStart = Date.now();
let localStart = performance.now();
let known = false;
let told = null; // the service's own clock: its moment, the server's at that time, its speed

/** Set the server's clock by an answer's Date header, which is cut to whole seconds. */
export function setClock(answer) {
  const date = Date.parse(answer.headers.get("Date") ?? "");
  if (Number.isNaN(date)) return;
  const half = 500;
  if (known && Math.abs(date + half - serverTime()) < 1500) return; // no jitter of a running countdown
  serverStart = date + half;
  localStart = performance.now();
  known = true;
}

/** Run by the service's clock, which may have begun elsewhere and may be faster; null: as the server's. */
export function useClock(clock) {
  told = clock ? { at: Date.parse(clock.now), server: serverTime(), speed: clock.speed } : null;
}

const serverTime = () => serverStart + (performance.now() - localStart);

/** Milliseconds since 1970 by the service's clock. */
export const now = () =>
  told ? told.at + told.speed * (serverTime() - told.server) : serverTime();
