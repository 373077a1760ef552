// What the map shows: the call with both ways, depots, units as they move, closed roads.

import { scene, secondGoes } from "../advice.js";
import { now } from "../clock.js";
import { byId, element, write } from "../elements.js";
import { anonymous, countWords, depotLines, lost, promise, unitLines, waits } from "../fleet.js";
import { language, t } from "../language.js";
import { ask } from "../server.js";
import { theme } from "../theme.js";
import { closedLines, closureLines, closuresNow } from "./closures.js";
import { drawLegend } from "./legend.js";
import { bounds, look, startMap } from "./map.js";

const ROADS_PATIENCE_MS = 120_000; // a large city's take seconds to make, many more on a busy server
const ROADS_AGAIN_MS = 5000;

export class MapView {
  map = null;
  network = null;
  making = false;
  looked = null; // which call the map last looked at
  fitted = undefined; // what it fits in its frame, null for the city; undefined once it was moved by hand
  shown = ""; // which marks the legend last had, in one text
  pointed = null; // where the pointer is, in pixels of the map

  constructor(store) {
    this.store = store;
    const box = byId("map");
    box.addEventListener("pointermove", ({ clientX, clientY }) => {
      const { left, top } = box.getBoundingClientRect();
      this.pointed = [clientX - left, clientY - top];
      this.drawTip();
    });
    box.addEventListener("pointerleave", () => {
      this.pointed = null;
      this.drawTip();
    });
    for (const moved of ["pointerdown", "wheel", "keydown"]) {
      box.addEventListener(moved, () => (this.fitted = undefined), { capture: true, passive: true });
    }
    new ResizeObserver(() => this.resize()).observe(box);
  }

  /** Both ways stay in sight in a frame of another size, unless the map was moved by hand. */
  resize() {
    if (!this.map || !byId("map").clientWidth) return;
    this.map.resize();
    if (this.fitted !== undefined) this.map.fit(this.fitted);
  }

  /** Look at a box, or at the whole city where it is null. */
  fit(box) {
    this.fitted = box;
    this.map?.fit(box);
  }

  /** Fetch the roads and draw them, unless that is done or under way; again where they did not come. */
  async start() {
    if (this.map || this.making) return;
    this.making = true;
    this.say("map.waiting");
    try {
      this.network = await ask("v1/network.geojson", "GET", undefined, ROADS_PATIENCE_MS);
    } catch {
      setTimeout(() => byId("desk").hidden || this.start(), ROADS_AGAIN_MS);
      return;
    } finally {
      this.making = false;
    }
    try {
      this.map = await startMap(byId("map"), this.network);
      byId("map").dataset.drawn = "yes";
      this.say(null);
    } catch (error) {
      console.warn(`map: ${error.message}`);
      this.say("map.missing");
      return;
    }
    this.restyle();
    this.draw();
    document.fonts.load(`700 12px ${getComputedStyle(document.body).fontFamily}`, "空").then(() => this.restyle());
  }

  /** Why there is no map, in the words of a key; null where there is one. */
  say(key) {
    const note = byId("map-missing");
    note.hidden = key === null;
    if (key) note.dataset.t = key;
    write(note, t(note.dataset.t));
  }

  /** Another theme or language. */
  restyle() {
    this.shown = "";
    this.map?.use(look(theme()));
  }

  draw() {
    const { store } = this;
    const [advice, dispatch] = [store.shown, store.dispatchOf(store.shown)];
    const shown = scene(advice);
    const sent = secondGoes(advice, store, now());
    if (store.dispatches.get(store.selected)?.state === "stood_down") Object.assign(shown, { second: [], shared: [] });
    this.drawDepots();
    if (!this.map) return;
    this.map.overlay.set({ scene: { ...shown, sent }, roles: this.roles(dispatch ?? advice, sent) });
    this.map.overlay.setUnits(store.fleet.units.values());
    this.drawClosures();
    this.drawLegend();
    if (this.looked === store.selected) return; // a dispatcher who moved the map keeps it
    this.looked = store.selected;
    const ways = [...shown.primary, ...shown.second];
    this.fit(ways.length ? bounds([...ways, shown.incident]) : null);
  }

  /** Depots with their numbers, on the map and in a list for who cannot see it. */
  drawDepots() {
    const { city, fleet, shown } = this.store;
    const time = now();
    const depots = (city?.depots ?? []).map((depot) => ({
      ...depot,
      ...fleet.depot(depot.name, time),
      concerned: [shown?.primary?.depot, shown?.second?.depot].includes(depot.name),
    }));
    depots.sort((a, b) => b.concerned - a.concerned); // named first
    const list = byId("depots");
    if (list.children.length !== depots.length) list.replaceChildren(...depots.map(() => element("li")));
    depots.forEach((depot, n) => {
      list.children[n].dataset.depot = depot.name;
      write(list.children[n], `${depot.name}: ${countWords(depot)}`);
    });
    this.map?.overlay.set({ depots });
  }

  /** The units of the shown call, by their part in it. */
  roles(going, sent) {
    const roles = new Map();
    if (!going || going.state === "ended") return roles;
    if (going.primary && !anonymous(going.primary)) roles.set(going.primary.unit, "primary");
    if (sent && going.second && !anonymous(going.second)) roles.set(going.second.unit, "second");
    return roles;
  }

  drawLegend() {
    const marked = [...this.store.fleet.units.values()].filter((unit) => !waits(unit) && !unit.anonymous);
    const marks = new Set(marked.map(({ status }) => status));
    const time = now();
    if (marked.some(lost)) marks.add("stale");
    if (marked.some((unit) => promise(unit, time))) marks.add("promised");
    const text = [language(), theme(), ...marks].join();
    if (text === this.shown) return;
    this.shown = text;
    drawLegend(marks);
  }

  drawClosures() {
    if (!this.map) return;
    const all = closuresNow(this.store, now());
    const closures = all.map((closure) => ({ ...closure, lines: closedLines(closure, this.network) }));
    this.map.overlay.set({ closures });
  }

  /** Look at one closure. */
  lookAt(closure) {
    this.fit(bounds(closedLines(closure, this.network).flat()));
  }

  /** What is under the pointer, in a few lines; time and units move on under it. */
  drawTip() {
    const tip = byId("map-tip");
    const found = this.pointed && this.map?.overlay.find(...this.pointed);
    tip.hidden = !found;
    if (!found) return;
    const { unit, depot, closure } = found;
    const lines = unit ? unitLines(unit, now()) : depot ? depotLines(depot) : closureLines(closure, now());
    const text = lines.join("\n");
    if (tip.dataset.text !== text) {
      tip.dataset.text = text;
      tip.replaceChildren(...lines.map((line) => element("p", {}, line)));
    }
    const [x, y] = this.pointed;
    const { clientWidth: width, clientHeight: height } = byId("map");
    tip.style.left = `${Math.min(x + 14, width - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.max(4, y + 18 + tip.offsetHeight > height ? y - tip.offsetHeight - 12 : y + 18)}px`;
  }
}
