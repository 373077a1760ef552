// What lives on the map: the ways to the incident, depots, units as they move, closed roads, a line
// that is being drawn. One canvas over the roads: a thousand units cost one picture, and no element each.

import { now } from "../clock.js";
import { element } from "../elements.js";
import { lost, promise, waits } from "../fleet.js";
import { placed } from "./labels.js";
import { drawClosure, drawDraft, drawWays } from "./lines.js";
import { depotBox, drawDepot, drawIncident, DEPOT, SIZE, Stamps } from "./marks.js";

const FRAME_MS = [40, 250]; // between two pictures, at least and at most
const STRIDE = 0.7; // pixels: who moves by less needs no new picture
const GLIDE_MS = [250, 2000]; // how long a unit takes to its next place, at least and at most
const NEAR_M = 4; // metres a pixel: closer than this, units have their ids beside them
const RING = 22; // pixels from the middle of a unit of the shown call to the edge of its ring
const REACH = 15; // pixels around the pointer
const STATION = 20; // pixels around a depot's square, which must stay legible
const CROWD = 60; // more marks than this are drawn smaller
const SIDES = ["below", "above", "right", "left"];
const ROLLING = ["available", "dispatched", "en_route", "transporting"];
const ORDER = ["out_of_service", "at_hospital", "transporting", "on_scene", "dispatched", "en_route"];

const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Overlay {
  glides = new Map(); // units on their way from one place to the next, by id
  placed = []; // units as they were last drawn
  scene = { primary: [], second: [], shared: [], incident: null, sent: false };
  depots = []; // with their places and numbers, those of the shown call first
  roles = new Map(); // what units do for the shown call, by id
  sides = new Map(); // where names of depots stand, by name
  closures = [];
  draft = null;
  waiting = 0;
  frame = 0;
  drawnAt = 0;
  pause = 0;

  /** `project` turns [lon, lat] into [x, y] of the container. */
  constructor(container, project) {
    this.canvas = element("canvas", { class: "overlay", "aria-hidden": "true" });
    this.drawing = this.canvas.getContext("2d");
    Object.assign(this, { container, project });
    container.append(this.canvas);
  }

  /** Another theme or language: all stamps are made anew. */
  use(look) {
    this.look = { ...look, font: getComputedStyle(document.body).fontFamily };
    this.stamps = null;
    this.draw();
  }

  /** Show something else: any of `scene`, `depots`, `roles`, `closures` and `draft`. */
  set(what) {
    Object.assign(this, what);
    this.wish();
  }

  /** Units where they are now; they glide there from where they were. */
  setUnits(units) {
    const moment = performance.now();
    const gone = new Set(this.glides.keys());
    for (const unit of units) {
      gone.delete(unit.id);
      const { lon, lat } = unit.position ?? {};
      const glide = this.glides.get(unit.id);
      if (!glide) {
        this.glides.set(unit.id, { unit, from: [lon, lat], to: [lon, lat], start: moment, heard: moment, lasts: 0 });
        continue;
      }
      if (glide.to[0] !== lon || glide.to[1] !== lat) {
        const from = glide.unit.position && unit.position ? place(glide, moment) : [lon, lat];
        const lasts = still.matches ? 0 : Math.min(Math.max(moment - glide.heard, GLIDE_MS[0]), GLIDE_MS[1]);
        Object.assign(glide, { from, to: [lon, lat], start: moment, heard: moment, lasts });
      }
      glide.unit = unit;
    }
    for (const id of gone) this.glides.delete(id);
    this.wish();
  }

  /** Draw soon; from far away units hardly move, and a few pictures a second are enough. */
  wish() {
    if (this.waiting) return;
    const wait = Math.max(0, this.drawnAt + this.pause - performance.now());
    this.waiting = setTimeout(() => {
      this.frame = requestAnimationFrame(() => this.draw());
    }, wait);
  }

  draw() {
    const moment = performance.now();
    clearTimeout(this.waiting);
    cancelAnimationFrame(this.frame);
    this.drawnAt = moment;
    this.waiting = 0;
    if (!this.look) return;
    this.measure();
    const { drawing, width, height, ratio } = this;
    drawing.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawing.clearRect(0, 0, width, height);
    this.placeAll(moment);
    for (const depot of this.depots) if (!depot.concerned) drawDepot(this, depot);
    drawWays(this, this.scene);
    for (const closure of this.closures) drawClosure(this, closure);
    for (const depot of this.depots) if (depot.concerned) drawDepot(this, depot);
    const calm = this.placed.filter(({ unit }) => !this.roles.has(unit.id));
    for (const one of calm) this.drawUnit(one);
    if (this.scene.incident) drawIncident(this, ...this.project(this.scene.incident));
    for (const one of this.placed.slice(calm.length)) this.drawUnit(one);
    this.drawNames();
    if (this.draft) drawDraft(this, this.draft);
    const speed = this.fastest(moment);
    this.pause = Math.min(Math.max(STRIDE / speed, FRAME_MS[0]), FRAME_MS[1]);
    if (speed > 0) this.wish();
  }

  measure() {
    const { clientWidth: width, clientHeight: height } = this.container;
    const ratio = Math.min(devicePixelRatio, 2);
    const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16; // as all words
    if (width !== this.width || height !== this.height || ratio !== this.ratio || scale !== this.scale) {
      Object.assign(this, { width, height, ratio, scale, stamps: null });
      this.canvas.width = width * ratio;
      this.canvas.height = height * ratio;
    }
    this.stamps ??= new Stamps(this.look, ratio * scale);
  }

  /** Pixels a millisecond of the fastest unit in sight; zero where all have arrived. */
  fastest(moment) {
    let most = 0;
    for (const { unit } of this.placed) {
      const { from, to, start, lasts } = this.glides.get(unit.id);
      if (moment >= start + lasts) continue;
      const [[x, y], [toX, toY]] = [this.project(from), this.project(to)];
      most = Math.max(most, Math.hypot(toX - x, toY - y) / lasts);
    }
    return most;
  }

  /** Find where depots and units are in the picture; those that stand at a depot are beside its square. */
  placeAll(moment) {
    const time = now();
    const seen = ([x, y]) => x > -SIZE && y > -SIZE && x < this.width + SIZE && y < this.height + SIZE;
    for (const depot of this.depots) depot.at = this.project([depot.lon, depot.lat]);
    const many = this.depots.filter(({ at }) => seen(at)).length > CROWD / 2;
    for (const depot of this.depots) depot.scale = this.scale * (many && !depot.concerned ? 0.55 : 1);
    const squares = new Map(this.depots.map(({ name, at }) => [name, at]));
    const crowds = new Map(); // those beside a depot's square, by its name
    this.placed = [];
    for (const glide of this.glides.values()) {
      const { unit } = glide;
      if (waits(unit) || unit.anonymous) continue; // the square counts it
      const hollow = lost(unit);
      const at = hollow ? squares.get(unit.depot) : this.project(place(glide, moment));
      if (!at || !seen(at)) continue;
      const stands = hollow || !rolls(unit);
      const near = stands && [...squares].find(([, [x, y]]) => Math.hypot(at[0] - x, at[1] - y) < STATION);
      if (near) crowds.set(near[0], (crowds.get(near[0]) ?? 0) + 1);
      this.placed.push({
        unit,
        hollow,
        at: near ? parked(near[1], crowds.get(near[0]) - 1, this.scale) : at,
        promised: promise(unit, time) !== null,
      });
    }
    this.placed.sort((a, b) => rank(a, this.roles) - rank(b, this.roles));
    this.near = this.metresPerPixel() < NEAR_M;
    this.size = this.scale * (this.near || this.placed.length < CROWD ? SIZE : 0.75 * SIZE);
  }

  drawUnit({ unit, hollow, at: [x, y], promised }) {
    const { drawing, stamps } = this;
    const role = this.roles.get(unit.id);
    const size = role ? this.scale * SIZE : this.size;
    if (role) this.drawRing(role, x, y);
    if (!hollow && rolls(unit) && Number.isFinite(unit.position.heading)) {
      drawing.save();
      drawing.translate(x, y);
      drawing.rotate((unit.position.heading * Math.PI) / 180);
      drawing.drawImage(stamps.wedge, -size / 2, -size / 2, size, size);
      drawing.restore();
    }
    drawing.drawImage(stamps.mark(unit.status, hollow, promised), x - size / 2, y - size / 2, size, size);
  }

  /** The two that the shown call concerns have rings like their ways: solid, and dashed. */
  drawRing(role, x, y) {
    const { drawing, look } = this;
    drawing.beginPath();
    drawing.arc(x, y, 19 * this.scale, 0, 2 * Math.PI);
    drawing.lineWidth = 7;
    drawing.strokeStyle = look.casing;
    drawing.stroke();
    drawing.lineWidth = 4;
    drawing.strokeStyle = look[role];
    drawing.setLineDash(role === "second" ? [8, 4] : []);
    drawing.stroke();
    drawing.setLineDash([]);
  }

  /**
   * Names of depots, and ids of units: of all when looked at closely, else of the two that matter now.
   * A name is left out while there is no room for it; those of the shown call may lie over units.
   */
  drawNames() {
    const { scale } = this;
    const around = ([x, y], far) => [x - far, y - far, x + far, y + far];
    const taken = [...this.controls(), ...this.depots.map((depot) => depotBox(depot))];
    if (this.scene.incident) taken.push(around(this.project(this.scene.incident), 18 * scale));
    const marks = this.placed.map(({ unit, at }) => around(at, (this.roles.has(unit.id) ? RING : 11) * scale));
    const everything = [...taken, ...marks];
    for (const { name, at: [x, y], concerned } of this.depots) {
      const label = { x, y, width: this.widthOf(name), height: 18 * scale, gap: 15 * scale };
      const sides = [this.sides.get(name), ...SIDES].filter(Boolean);
      this.sides.set(name, this.name(name, label, sides, [everything, taken], concerned));
    }
    for (const { unit, at: [x, y] } of [...this.placed].reverse()) {
      const role = this.roles.get(unit.id);
      if (!this.near && !role) continue;
      const gap = (role ? 24 : 15) * scale;
      const label = { x, y, width: this.widthOf(unit.id), height: 18 * scale, gap };
      this.name(unit.id, label, SIDES, [everything, taken], role);
    }
  }

  /** Write a name where it covers nothing; one that is needed may lie over marks of units. On which side? */
  name(words, label, sides, [everything, taken], needed) {
    const frame = [this.width, this.height];
    const found = placed(label, sides, everything, frame) ?? (needed ? placed(label, sides, taken, frame) : null);
    if (!found) return null;
    everything.push(found.box);
    taken.push(found.box);
    this.write(words, found.box);
    return found.side;
  }

  widthOf(words) {
    this.drawing.font = `700 ${13 * this.scale}px ${this.look.font}`;
    return this.drawing.measureText(words).width + 8;
  }

  write(words, [left, top, right, bottom]) {
    const { drawing, look } = this;
    drawing.font = `700 ${13 * this.scale}px ${look.font}`;
    drawing.textAlign = "center";
    drawing.textBaseline = "middle";
    drawing.fillStyle = look.paper;
    drawing.globalAlpha = 0.85;
    drawing.fillRect(left, top, right - left, bottom - top);
    drawing.globalAlpha = 1;
    drawing.fillStyle = look.ink;
    drawing.fillText(words, (left + right) / 2, (top + bottom) / 2 + 0.5);
  }

  /** Boxes of what the page has over the map. */
  controls() {
    const frame = this.container.getBoundingClientRect();
    return [...this.container.parentElement.querySelectorAll(".whole, .legend, .leaflet-bar")].map((node) => {
      const box = node.getBoundingClientRect();
      return [box.left - frame.left, box.top - frame.top, box.right - frame.left, box.bottom - frame.top];
    });
  }

  metresPerPixel() {
    const [depot] = this.depots;
    if (!depot) return Infinity;
    const [x] = depot.at;
    const [right] = this.project([depot.lon + 0.01, depot.lat]);
    return (1113.2 * Math.cos((depot.lat * Math.PI) / 180)) / Math.max(right - x, 1e-9);
  }

  /** The unit, or else the depot or the closure, under the pointer. */
  find(x, y) {
    let [best, least] = [null, REACH];
    for (const { unit, at } of this.placed) {
      const far = Math.hypot(at[0] - x, at[1] - y);
      if (far <= least) [best, least] = [unit, far];
    }
    if (best) return { unit: best };
    const depot = this.depots.find(
      ({ at, scale }) => at && Math.max(Math.abs(at[0] - x), Math.abs(at[1] - y)) < (DEPOT * scale) / 2,
    );
    if (depot) return { depot };
    const closure = this.closures.find((one) => one.lines.some((line) => near(line.map(this.project), x, y)));
    return closure ? { closure } : null;
  }
}

/** Where a unit is between the place before and the one last reported. */
function place({ from, to, start, lasts }, moment) {
  const share = lasts ? Math.min((moment - start) / lasts, 1) : 1;
  return [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
}

/** Does it drive, as far as was reported? */
const rolls = ({ status, position }) =>
  ROLLING.includes(status) && position !== null && position.speed_kmh !== 0;

/** Places in rows above a depot's square. */
function parked([x, y], number, scale) {
  const [row, column] = [Math.floor(number / 5), number % 5];
  const shift = ((column + 1) >> 1) * (column % 2 ? 1 : -1);
  return [x + 20 * scale * shift, y - scale * (38 + 20 * row)];
}

/** What is drawn later lies above: those at work, then free ones, then those of the shown call. */
const rank = ({ unit, hollow }, roles) =>
  (roles.has(unit.id) ? 100 : 0) + (unit.free && !hollow ? 50 : ORDER.indexOf(unit.status));

function near(line, x, y) {
  return line.some(([bx, by], i) => {
    if (i === 0) return false;
    const [ax, ay] = line[i - 1];
    const [dx, dy] = [bx - ax, by - ay];
    const along = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1);
    const share = Math.min(Math.max(along, 0), 1);
    return Math.hypot(x - ax - share * dx, y - ay - share * dy) < 7;
  });
}
