// Closing a road by drawing it on the map, and opening it again.

import { closureLines } from "./closures.js";
import { now } from "../clock.js";
import { byId } from "../elements.js";
import { clockTime } from "../format.js";
import { t } from "../language.js";
import { ask } from "../server.js";

const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
const STEP = 12; // pixels; a quarter of it with Shift
const CLOSE = 12; // pixels from the first point: the line becomes an area

export class Closing {
  map = null; // the map that is drawn on
  points = [];
  crosshair = null; // [x, y] of the keyboard's pointer
  stopClicks = null;

  /** `changed` is called with the closures that the service then has. */
  constructor(changed) {
    this.changed = changed;
    const box = byId("map");
    box.addEventListener("pointermove", ({ clientX, clientY }) => {
      if (!this.map) return;
      const { left, top } = box.getBoundingClientRect();
      this.crosshair = [clientX - left, clientY - top];
      this.draw();
    });
    document.addEventListener("keydown", (event) => this.key(event), { capture: true });
    byId("closing-finish").addEventListener("click", () => this.finish());
    byId("closing-cancel").addEventListener("click", () => this.stop());
    byId("closing-dialog").addEventListener("close", () => this.stop());
    byId("closing-back").addEventListener("click", () => byId("closing-dialog").close());
    byId("closing-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    for (const button of byId("closing-form").querySelectorAll("[data-minutes]")) {
      button.addEventListener("click", () => {
        byId("closing-until").value = clockTime(now() + 60_000 * button.dataset.minutes, false);
      });
    }
    byId("ending-form").addEventListener("submit", (event) => {
      if (event.submitter.value !== "end") return;
      event.preventDefault();
      this.end();
    });
  }

  start(map) {
    if (this.map || !map) return;
    Object.assign(this, { map, points: [], crosshair: null });
    this.stopClicks = map.onClick((place) => this.add(place));
    byId("closing").hidden = false;
    document.querySelector(".map").dataset.drawing = "yes";
    byId("map").focus();
    this.draw();
  }

  stop() {
    if (!this.map) return;
    this.stopClicks();
    this.map.overlay.set({ draft: null });
    this.map = null;
    byId("closing").hidden = true;
    delete document.querySelector(".map").dataset.drawing;
    document.querySelector('[data-action="close_road"]').focus();
  }

  draw() {
    const pointer = this.crosshair ? this.map.at(...this.crosshair) : null;
    this.map.overlay.set({ draft: { points: this.points, pointer } });
    byId("closing-finish").disabled = this.points.length < 2;
  }

  add(place) {
    const { project } = this.map.overlay;
    const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
    const [at, first] = [project(place), project(this.points[0] ?? place)];
    if (this.points.length > 2 && far(at, first) < CLOSE) return this.finish(true);
    this.points = [...this.points, place];
    return this.draw();
  }

  key(event) {
    if (!this.map || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    const onButton = event.target.closest("button");
    if (["Tab", "+", "=", "-"].includes(key) || (onButton && (key === "Enter" || key === " "))) return;
    event.stopPropagation();
    if (key === "Escape") this.stop();
    else if (key === "Enter") this.finish();
    else if (key === "Backspace") this.points = this.points.slice(0, -1);
    else if (key === " ") this.add(this.map.at(...this.middle()));
    else if (ARROWS[key]) this.move(...ARROWS[key], event.shiftKey ? STEP / 4 : STEP);
    else return;
    event.preventDefault();
    if (this.map) this.draw();
  }

  /** Where the keyboard's pointer is: in the middle of the map until it is moved. */
  middle() {
    const { clientWidth: width, clientHeight: height } = byId("map");
    this.crosshair ??= [width / 2, height / 2];
    return this.crosshair;
  }

  move(dx, dy, step) {
    const { clientWidth: width, clientHeight: height } = byId("map");
    const [x, y] = this.middle();
    const within = (value, most) => Math.min(Math.max(value, 0), most);
    this.crosshair = [within(x + step * dx, width), within(y + step * dy, height)];
  }

  finish(area = false) {
    if (this.points.length < 2) return;
    byId("closing-error").textContent = "";
    byId("closing-reason").value = "";
    byId("closing-all").checked = false;
    byId("closing-all-box").hidden = true;
    byId("closing-until").value = "";
    byId("closing-area").disabled = this.points.length < 3;
    byId(area ? "closing-area" : "closing-line").checked = true;
    byId("closing-dialog").showModal();
    byId("closing-reason").focus();
  }

  async send() {
    const kind = byId("closing-area").checked ? "polygon" : "line";
    const until = nextMoment(byId("closing-until").value.trim(), now());
    const body = { reason: byId("closing-reason").value.trim(), until, [kind]: this.points };
    if (byId("closing-all").checked) body.whole_city = true;
    byId("closing-error").textContent = "";
    try {
      await ask("v1/closures", "POST", body);
      byId("closing-dialog").close();
      this.changed(await ask("v1/closures"));
    } catch (error) {
      byId("closing-error").textContent = t("closing.failed", { message: error.message });
      byId("closing-all-box").hidden &&= error.code !== "closes_too_much";
    }
  }

  // --- opening again ----------------------------------------------------------------

  askEnd(closure) {
    this.ending = closure;
    byId("ending-closure").textContent = closureLines(closure, now()).join(" · ");
    byId("ending-error").textContent = "";
    byId("ending-dialog").showModal();
  }

  async end() {
    byId("ending-error").textContent = "";
    try {
      await ask(`v1/closures/${encodeURIComponent(this.ending.id)}`, "DELETE").catch((error) => {
        if (error.status !== 404) throw error; // 404: it was opened before
      });
      byId("ending-dialog").close();
      this.changed(await ask("v1/closures"));
    } catch (error) {
      byId("ending-error").textContent = t("ending.failed", { message: error.message });
    }
  }
}

/** The next moment when clocks of the city say so, such as 18:30 or 1830; null for no time. */
function nextMoment(time, now) {
  if (!time) return null;
  const minutes = (text) => {
    const digits = text.replace(":", "");
    return 60 * Number(digits.slice(0, -2)) + Number(digits.slice(-2));
  };
  const wait = (minutes(time) - minutes(clockTime(now, false)) + 1440) % 1440 || 1440;
  return new Date(60_000 * (Math.floor(now / 60_000) + wait)).toISOString();
}
