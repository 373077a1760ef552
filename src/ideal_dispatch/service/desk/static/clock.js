// The server's time. A desk's own clock may be wrong by minutes, and expiry must not be.

let serverStart = Date.now();
let localStart = performance.now();
let known = false;

/** Set the clock by an answer's Date header, which is cut to whole seconds. */
export function setClock(answer) {
  const date = Date.parse(answer.headers.get("Date") ?? "");
  if (Number.isNaN(date)) return;
  const half = 500;
  if (known && Math.abs(date + half - now()) < 1500) return; // no jitter of a running countdown
  serverStart = date + half;
  localStart = performance.now();
  known = true;
}

/** Milliseconds since 1970 by the server's clock. */
export const now = () => serverStart + (performance.now() - localStart);
