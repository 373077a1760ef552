// Questions to the service, and its stream of events.

const PATIENCE_MS = 8000;
const SILENCE_MS = 12_000; // the service says something every 5 s
const RESUMED_MS = 60_000; // a connection lost for longer begins again
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 3000;

/** An answer that is not the one wanted; status 0 means that there was none. */
class ServerError extends Error {
  constructor(status, error) {
    super(error?.message ?? `HTTP ${status}`);
    Object.assign(this, { status, code: error?.code, reply: error?.reply });
  }
}

export async function ask(path, method = "GET", body = undefined, patienceMs = PATIENCE_MS) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      signal: AbortSignal.timeout(patienceMs),
      cache: "no-store",
    });
  } catch (error) {
    throw new ServerError(0, error);
  }
  const content = await answer.json().catch(() => null);
  if (!answer.ok) throw new ServerError(answer.status, content?.error);
  return content;
}

/**
 * Listen to the service's events until `stop`. EventSource hides the heartbeat, so the stream
 * is read here: silence of SILENCE_MS is a lost server, as is a closed connection, or an
 * `onOpen` that fails. Soon after a loss the stream goes on where it ended (`onOpen(true)`);
 * after a long one it begins with now, and all that is known must be asked for again.
 */
export class Events {
  last = null; // the id of the last event

  constructor({ onEvent, onOpen, onLost, onRefused }) {
    Object.assign(this, { onEvent, onOpen, onLost, onRefused });
    this.stopped = false;
    this.run();
  }

  stop() {
    this.stopped = true;
    this.attempt?.abort();
  }

  async run() {
    let [pause, heardAt] = [FIRST_RETRY_MS, performance.now()];
    while (!this.stopped) {
      if (performance.now() - heardAt > RESUMED_MS) this.last = null;
      try {
        await this.read(() => {
          pause = FIRST_RETRY_MS;
          heardAt = performance.now();
        });
      } catch (error) {
        if (error.status === 401 || error.status === 403) {
          if (!this.stopped) this.onRefused();
          return;
        }
        if (error.status > 0) this.last = null; // it cannot be resumed there
      }
      if (this.stopped) return;
      this.onLost();
      await new Promise((resume) => setTimeout(resume, pause));
      pause = Math.min(2 * pause, LAST_RETRY_MS);
    }
  }

  async read(heard) {
    this.attempt = new AbortController();
    let watchdog;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => this.attempt.abort(), SILENCE_MS);
    };
    watch();
    try {
      const resumed = this.last !== null;
      const answer = await fetch("v1/events", {
        headers: { Accept: "text/event-stream", ...(resumed && { "Last-Event-ID": this.last }) },
        signal: this.attempt.signal,
        cache: "no-store",
      });
      if (!answer.ok) throw new ServerError(answer.status);
      await this.onOpen(resumed); // events wait meanwhile, so that none falls between
      let kept = "";
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        heard();
        const { done, value } = await reader.read();
        if (done) return;
        watch();
        const parts = (kept + value).replaceAll("\r\n", "\n").split("\n\n");
        kept = parts.pop();
        for (const part of parts) this.take(part);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  take(part) {
    let [kind, id] = ["message", null];
    const data = [];
    for (const line of part.split("\n")) {
      const [, name, value] = line.match(/^(\w+): ?(.*)$/) ?? [];
      if (name === "event") kind = value;
      if (name === "id") id = value;
      if (name === "data") data.push(value);
    }
    if (data.length) this.onEvent(kind, JSON.parse(data.join("\n")));
    this.last = id ?? this.last;
  }
}
