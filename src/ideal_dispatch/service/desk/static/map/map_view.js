// What the map shows: the call with both ways, depots, units as they move, closed roads.

import { scene } from "../advice.js";
import { closedLines, closureLines, closuresNow } from "./closures.js";
import { now } from "../clock.js";
import { stoodDown } from "../dispatch.js";
import { byId, element, write } from "../elements.js";
import { unitLines } from "../fleet.js";
import { language, t } from "../language.js";
import { bounds, look, startMap } from "./map.js";
import { ask } from "../server.js";
import { theme } from "../theme.js";

const ROADS_PATIENCE_MS = 120_000; // a large city's take seconds to make, many more on a busy server
const ROADS_AGAIN_MS = 5000;

export class MapView {
  map = null;
  network = null;
  making = false;
  looked = null; // which call the map last looked at
  fitted = undefined; // what it fits in its frame, null for the city; undefined once somebody moved it
  shown = ""; // what it last drew, in one text
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

  /** Both ways stay in sight in a frame of another size, unless a dispatcher moved the map. */
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
      await startMap(byId("map"), this.network, theme, (map) => this.take(map));
    } catch {
      setTimeout(() => byId("desk").hidden || this.start(), ROADS_AGAIN_MS);
    } finally {
      this.making = false;
    }
  }

  take(map) {
    this.map = map;
    this.say(map ? null : "map.missing");
    this.looked = undefined;
    this.shown = "";
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
    this.map?.use(look(theme()));
  }

  draw() {
    if (!this.map) return;
    const { store } = this;
    const dispatch = store.dispatchOf(store.shown);
    const shown = scene(store.shown);
    if (stoodDown(dispatch)) Object.assign(shown, { second: [], shared: [] });
    const depots = this.depots();
    const text = JSON.stringify([store.selected, stoodDown(dispatch), depots, language()]);
    this.drawUnits();
    this.drawClosures();
    if (text !== this.shown) {
      this.shown = text;
      this.map.show(shown, depots);
    }
    if (this.looked === store.selected) return; // a dispatcher who moved the map keeps it
    this.looked = store.selected;
    const place = shown.incident && this.inside(shown.incident) ? [shown.incident] : [];
    this.fit(bounds([...shown.primary, ...shown.second, ...place]));
  }

  depots() {
    const { store } = this;
    const time = now();
    const concerned = [store.shown?.primary?.depot, store.shown?.second?.depot];
    const known = (name) => (store.fleet.known ? store.fleet.station(name, time) : store.units.get(name));
    return (store.city?.depots ?? [])
      .map((depot) => ({ ...depot, ...known(depot.name) }))
      .sort((a, b) => concerned.includes(b.name) - concerned.includes(a.name)); // named first
  }

  drawUnits() {
    if (!this.map) return;
    const { store } = this;
    const stations = new Map((store.city?.depots ?? []).map(({ name, lon, lat }) => [name, [lon, lat]]));
    this.map.overlay.setUnits(store.fleet.units.values(), stations, this.roles(), scene(store.shown).incident);
  }

  /** The units of the shown call, by their part in it. */
  roles() {
    const { shown } = this.store;
    const dispatch = this.store.dispatchOf(shown);
    const going = dispatch?.state === "ended" ? null : (dispatch ?? shown);
    const roles = new Map();
    if (going?.primary?.unit) roles.set(going.primary.unit, "primary");
    const second = dispatch ? dispatch.state === "running" : shown?.decision === "send_second";
    if (second && going?.second?.unit) roles.set(going.second.unit, "second");
    return roles;
  }

  drawClosures() {
    if (!this.map) return;
    const all = closuresNow(this.store, now());
    const drawn = all.map((closure) => ({ ...closure, lines: closedLines(closure, this.network) }));
    this.map.overlay.setClosures(drawn);
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
    const lines = found.unit ? unitLines(found.unit, now()) : closureLines(found.closure, now());
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

  /** Is a place in the city? A mistaken one would leave the map empty. */
  inside([lon, lat]) {
    const [west, south, east, north] = this.store.city.bounds;
    return west <= lon && lon <= east && south <= lat && lat <= north;
  }
}
