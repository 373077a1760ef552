// Questions to the service, and its stream of events.

import { setClock } from "./clock.js";

const PATIENCE_MS = 8000;
const SILENCE_MS = 12000; // the service says something every 5 s
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 3000;

/** An answer that is not the one wanted; status 0 means that there was none. */
class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
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
    throw new ServerError(0, error.message);
  }
  setClock(answer);
  const content = await answer.json().catch(() => null);
  if (!answer.ok) {
    throw new ServerError(answer.status, content?.error?.message ?? `HTTP ${answer.status}`);
  }
  return content;
}

/**
 * Listen to the service's events until `stop`. EventSource hides the heartbeat, so the stream
 * is read here: silence of SILENCE_MS is a lost server, as is a closed connection, or an
 * `onOpen` that fails.
 */
export class Events {
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
    let pause = FIRST_RETRY_MS;
    while (!this.stopped) {
      try {
        await this.read(() => (pause = FIRST_RETRY_MS));
      } catch (error) {
        if (error.status === 401 || error.status === 403) {
          if (!this.stopped) this.onRefused();
          return;
        }
      }
      if (this.stopped) return;
      this.onLost();
      await new Promise((resume) => setTimeout(resume, pause));
      pause = Math.min(2 * pause, LAST_RETRY_MS);
    }
  }

  async read(opened) {
    this.attempt = new AbortController();
    let watchdog;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => this.attempt.abort(), SILENCE_MS);
    };
    heard();
    try {
      const answer = await fetch("v1/events", {
        headers: { Accept: "text/event-stream" },
        signal: this.attempt.signal,
        cache: "no-store",
      });
      if (!answer.ok) throw new ServerError(answer.status, "no events");
      setClock(answer);
      await this.onOpen(); // events wait meanwhile, so that none falls between
      opened();
      let kept = "";
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        heard();
        const parts = (kept + value).replaceAll("\r\n", "\n").split("\n\n");
        kept = parts.pop();
        for (const part of parts) this.tell(part);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  tell(part) {
    let kind = "message";
    const data = [];
    for (const line of part.split("\n")) {
      if (line.startsWith("event:")) kind = line.slice(6).trim();
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
    if (data.length) this.onEvent(kind, JSON.parse(data.join("\n")));
  }
}
