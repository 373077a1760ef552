// What lives on the map: units as they move, closed roads, a line that is being drawn. One canvas
// over whichever map there is: a thousand units cost one picture, and no element each.

import { now } from "../clock.js";
import { element } from "../elements.js";
import { lost, promise, waits } from "../fleet.js";
import { SIZE, Stamps } from "./marks.js";
import { drawClosure, drawDraft } from "./tape.js";

const FRAME_MS = [40, 250]; // between two pictures, at least and at most
const STRIDE = 0.7; // pixels: who moves by less needs no new picture
const GLIDE_MS = [250, 2000]; // how long a unit takes to its next place, at least and at most
const NEAR_M = 4; // metres a pixel: closer than this, units have their ids beside them
const RING = 22; // pixels from the middle of a unit of the shown call to the edge of its ring
const REACH = 15; // pixels around the pointer
const STATION = 20; // pixels around a station's square, which must stay legible
const CROWD = 60; // more marks than this are drawn smaller
const ROLLING = ["available", "dispatched", "en_route", "transporting"];
const ORDER = ["out_of_service", "at_hospital", "transporting", "on_scene", "dispatched", "en_route"];

const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Overlay {
  /** `project` turns [lon, lat] into [x, y] of the container. */
  constructor(container, project) {
    this.canvas = element("canvas", { class: "overlay", "aria-hidden": "true" });
    this.drawing = this.canvas.getContext("2d");
    Object.assign(this, { container, project, glides: new Map(), placed: [], roles: new Map() });
    Object.assign(this, { stations: new Map(), avoided: [], closures: [], draft: null, waiting: 0, frame: 0, drawnAt: 0, pause: 0 });
    container.append(this.canvas);
  }

  remove() {
    clearTimeout(this.waiting);
    cancelAnimationFrame(this.frame);
    this.canvas.remove();
  }

  /** Another theme or language: all stamps are made anew. */
  use(look) {
    this.look = { ...look, font: getComputedStyle(document.body).fontFamily };
    this.stamps = null;
    this.draw();
  }

  /** Units where they are now, stations as places by name; the place of the shown call and its units. */
  setUnits(units, stations, roles, incident) {
    Object.assign(this, { stations, roles, incident });
    const moment = performance.now();
    const gone = new Set(this.glides.keys());
    for (const unit of units) {
      gone.delete(unit.id);
      const { lon, lat } = unit.position ?? {};
      const glide = this.glides.get(unit.id);
      if (!glide) {
        this.glides.set(unit.id, { unit, from: [lon, lat], to: [lon, lat], start: moment, told: moment, lasts: 0 });
        continue;
      }
      if (glide.to[0] !== lon || glide.to[1] !== lat) {
        const from = glide.unit.position && unit.position ? place(glide, moment) : [lon, lat];
        const lasts = still.matches ? 0 : Math.min(Math.max(moment - glide.told, GLIDE_MS[0]), GLIDE_MS[1]);
        Object.assign(glide, { from, to: [lon, lat], start: moment, told: moment, lasts });
      }
      glide.unit = unit;
    }
    for (const id of gone) this.glides.delete(id);
    this.wish();
  }

  /** Boxes of marks and names that stand still; ids keep off them. */
  avoid(boxes, frame) {
    this.avoided = boxes.map(({ left, top, right, bottom }) => [
      left - frame.left, top - frame.top, right - frame.left, bottom - frame.top,
    ]);
    this.wish();
  }

  /** Boxes around the units of the shown call with their ids, where they are now. */
  rings({ left, top }) {
    const far = RING * this.scale;
    return this.placed
      .filter(({ unit }) => this.roles.has(unit.id))
      .map(({ at: [x, y] }) => new DOMRect(left + x - far, top + y - far, 2 * far, 2 * far));
  }

  setClosures(closures) {
    this.closures = closures;
    this.wish();
  }

  setDraft(draft) {
    this.draft = draft;
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
    this.drawnAt = moment;
    this.waiting = 0;
    if (!this.look) return;
    this.measure();
    const { drawing, width, height, ratio } = this;
    drawing.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawing.clearRect(0, 0, width, height);
    for (const closure of this.closures) drawClosure(this, closure);
    this.drawUnits(moment);
    if (this.draft) drawDraft(this, this.draft);
    const speed = this.fastest(moment);
    this.pause = Math.min(Math.max(STRIDE / speed, FRAME_MS[0]), FRAME_MS[1]);
    if (speed > 0) this.wish();
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

  // --- units ------------------------------------------------------------------------

  drawUnits(moment) {
    const time = now();
    const seen = ([x, y]) => x > -SIZE && y > -SIZE && x < this.width + SIZE && y < this.height + SIZE;
    const squares = new Map([...this.stations].map(([name, at]) => [name, this.project(at)]));
    const crowds = new Map(); // those beside a station's square, by its name
    this.placed = [];
    for (const glide of this.glides.values()) {
      const { unit } = glide;
      if (waits(unit) && unit.free) continue; // the square counts it
      const hollow = lost(unit);
      const at = hollow ? squares.get(unit.station) : this.project(place(glide, moment));
      if (!at || !seen(at)) continue;
      const stands = hollow || !rolls(unit);
      const near = stands && [...squares].find(([, [x, y]]) => Math.hypot(at[0] - x, at[1] - y) < STATION);
      if (near) crowds.set(near[0], (crowds.get(near[0]) ?? 0) + 1);
      this.placed.push({
        unit,
        hollow,
        at: near ? beside(near[1], crowds.get(near[0]) - 1, this.scale) : at,
        promised: promise(unit, time) !== null,
      });
    }
    this.placed.sort((a, b) => rank(a, this.roles) - rank(b, this.roles));
    const near = this.metresPerPixel() < NEAR_M;
    this.size = this.scale * (near || this.placed.length < CROWD ? SIZE : 0.75 * SIZE);
    const calm = this.placed.filter(({ unit }) => !this.roles.has(unit.id));
    for (const one of calm) this.drawUnit(one);
    if (this.incident) this.drawIncident(...this.project(this.incident));
    for (const one of this.placed.slice(calm.length)) this.drawUnit(one);
    this.drawIds(near);
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

  /** The incident once more, above the units that pass it. */
  drawIncident(x, y) {
    const { drawing } = this;
    for (const [radius, colour] of [[17, "#fff"], [15, "#111"], [9, "#fff"], [6, "#111"], [3, "#fff"]]) {
      drawing.beginPath();
      drawing.arc(x, y, radius * this.scale, 0, 2 * Math.PI);
      drawing.fillStyle = colour;
      drawing.fill();
    }
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

  /** Ids where there is room: of all when looked at closely, else of the two that matter now. */
  drawIds(near) {
    const { drawing, look, scale } = this;
    const marks = this.placed.map(({ at: [x, y] }) => [x - 9, y - 9, x + 9, y + 9]);
    const taken = [...marks, ...this.avoided];
    drawing.font = `700 ${13 * scale}px ${look.font}`;
    drawing.textAlign = "center";
    drawing.textBaseline = "middle";
    for (const { unit, at: [x, y] } of this.placed.toReversed()) {
      const role = this.roles.get(unit.id);
      if (!near && !role) continue;
      const [half, high, off] = [drawing.measureText(unit.id).width / 2 + 4, 9 * scale, (role ? 33 : 24) * scale];
      const centre = [y + off, y - off].find((middle) => {
        const box = [x - half, middle - high, x + half, middle + high];
        if (taken.some((other) => overlap(box, other))) return false;
        taken.push(box);
        return true;
      });
      if (centre === undefined) continue;
      drawing.fillStyle = look.paper;
      drawing.globalAlpha = 0.85;
      drawing.fillRect(x - half, centre - high, 2 * half, 2 * high);
      drawing.globalAlpha = 1;
      drawing.fillStyle = look.ink;
      drawing.fillText(unit.id, x, centre + 0.5);
    }
  }

  metresPerPixel() {
    const [place] = [...this.stations.values()];
    if (!place) return Infinity;
    const [x] = this.project(place);
    const [right] = this.project([place[0] + 0.01, place[1]]);
    return (1113.2 * Math.cos((place[1] * Math.PI) / 180)) / Math.max(right - x, 1e-9);
  }

  /** The unit, or else the closure, under the pointer. */
  find(x, y) {
    let [best, least] = [null, REACH];
    for (const { unit, at } of this.placed) {
      const far = Math.hypot(at[0] - x, at[1] - y);
      if (far <= least) [best, least] = [unit, far];
    }
    if (best) return { unit: best };
    const closure = this.closures.find((one) =>
      one.lines.some((line) => near(line.map(this.project), x, y)),
    );
    return closure ? { closure } : null;
  }
}

/** Where a unit is between the place before and the one last told. */
function place({ from, to, start, lasts }, moment) {
  const share = lasts ? Math.min((moment - start) / lasts, 1) : 1;
  return [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
}

/** Does it drive, as far as anybody knows? */
const rolls = ({ status, position }) =>
  ROLLING.includes(status) && position !== null && position.speed_kmh !== 0;

/** Places in rows above a station's square. */
function beside([x, y], number, scale) {
  const [row, column] = [Math.floor(number / 5), number % 5];
  const shift = ((column + 1) >> 1) * (column % 2 ? 1 : -1);
  return [x + 20 * scale * shift, y - scale * (38 + 20 * row)];
}

/** What is drawn later lies above: those at work, then free ones, then those of the shown call. */
const rank = ({ unit, hollow }, roles) =>
  (roles.has(unit.id) ? 100 : 0) + (unit.free && !hollow ? 50 : ORDER.indexOf(unit.status));

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

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
