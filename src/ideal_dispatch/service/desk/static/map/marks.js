// The marks on the map: of units a shape and a letter for every status, drawn once and then stamped;
// of depots a square with the number of free units, and the incident.

import { t } from "../language.js";

const TURN = 2 * Math.PI;

/** Free ones are large and clear, those at work small and quiet; no two differ by colour alone. */
const MARKS = {
  at_station: { shape: "circle", fill: "free", radius: 10 },
  available: { shape: "circle", fill: "free", radius: 10 },
  dispatched: { shape: "diamond", fill: "going", radius: 8 },
  en_route: { shape: "diamond", fill: "going", radius: 8 },
  on_scene: { shape: "square", fill: "busy", radius: 8 },
  transporting: { shape: "hexagon", fill: "busy", radius: 8 },
  at_hospital: { shape: "cross", fill: "busy", radius: 8 },
  out_of_service: { shape: "octagon", fill: "none", radius: 8 },
};
export const STATUSES = Object.keys(MARKS).filter((status) => status !== "at_station");
export const SIZE = 36; // of a stamp: the mark in its middle, room for what surrounds it
export const DEPOT = 26; // of a depot's square

const CORNERS = { diamond: [4, 0, 1.25], square: [4, 0.125, 1.25], hexagon: [6, 0, 1.12], octagon: [8, 0.0625, 1.05] };

function outline(drawing, shape, radius) {
  drawing.beginPath();
  if (shape === "circle") {
    drawing.arc(0, 0, radius, 0, TURN);
  } else if (shape === "cross") {
    const [long, short] = [1.15 * radius, 0.62 * radius];
    for (const [x, y] of [[-short, -long], [short, -long], [short, -short], [long, -short], [long, short], [short, short], [short, long], [-short, long], [-short, short], [-long, short], [-long, -short], [-short, -short]]) {
      drawing.lineTo(x, y);
    }
  } else {
    const [corners, turned, wide] = CORNERS[shape];
    for (let corner = 0; corner < corners; corner += 1) {
      const angle = (corner / corners + turned - 0.25) * TURN;
      drawing.lineTo(wide * radius * Math.cos(angle), wide * radius * Math.sin(angle));
    }
  }
  drawing.closePath();
}

/** Draw the mark of a status around the origin. */
function drawMark(drawing, status, look, { hollow = false, promised = false } = {}) {
  const { shape, fill, radius } = MARKS[status] ?? MARKS.out_of_service;
  const clear = fill === "free" && !hollow;
  drawing.lineJoin = "round";
  outline(drawing, shape, radius);
  drawing.lineWidth = 4;
  drawing.strokeStyle = look.paper;
  drawing.stroke();
  drawing.fillStyle = hollow || fill === "none" ? look.paper : look[fill];
  drawing.fill();
  drawing.lineWidth = clear ? 2 : 1.4;
  drawing.strokeStyle = clear ? look.ink : look.soft;
  drawing.setLineDash(hollow ? [3, 2.2] : []);
  drawing.stroke();
  drawing.setLineDash([]);
  if (promised) {
    outline(drawing, shape, radius + 3.6);
    drawing.lineWidth = 2;
    drawing.strokeStyle = look.ink;
    drawing.stroke();
  }
  drawing.font = `700 ${clear ? 12 : 10.5}px ${look.font}`;
  drawing.textAlign = "center";
  drawing.textBaseline = "alphabetic";
  drawing.fillStyle = clear ? look.freeInk : hollow || fill === "none" ? look.soft : look.ink;
  const letter = t(`unit.letter.${status}`);
  const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = drawing.measureText(letter);
  drawing.fillText(letter, 0, (up - down) / 2);
}

/** A small wedge outside the mark, for where a unit is heading; it points up. */
function drawWedge(drawing, look) {
  drawing.beginPath();
  for (const [x, y] of [[0, -17.5], [4.6, -11], [-4.6, -11]]) drawing.lineTo(x, y);
  drawing.closePath();
  drawing.lineJoin = "round";
  drawing.lineWidth = 3;
  drawing.strokeStyle = look.paper;
  drawing.stroke();
  drawing.fillStyle = look.ink;
  drawing.fill();
}

/** Stamps in a look and language, made when they are first wanted. */
export class Stamps {
  constructor(look, ratio) {
    Object.assign(this, { look, ratio, made: new Map() });
  }

  mark(status, hollow, promised) {
    return this.get(`${status} ${hollow} ${promised}`, (drawing) =>
      drawMark(drawing, status, this.look, { hollow, promised }),
    );
  }

  get wedge() {
    return this.get("wedge", (drawing) => drawWedge(drawing, this.look));
  }

  get(key, draw) {
    if (!this.made.has(key)) this.made.set(key, stamp(draw, this.ratio));
    return this.made.get(key);
  }
}

function stamp(draw, ratio) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = SIZE * ratio;
  const drawing = canvas.getContext("2d");
  drawing.setTransform(ratio, 0, 0, ratio, (SIZE / 2) * ratio, (SIZE / 2) * ratio);
  draw(drawing);
  return canvas;
}

/** The box of a depot's square with what stands beside it. */
export function depotBox({ at: [x, y], promised, scale }) {
  const half = (DEPOT * scale) / 2;
  return [x - half, y - half, x + half + (promised.length ? 24 * scale : 0), y + half];
}

/** A depot's square with its free units; those promised to calls stand beside, and are not among them. */
export function drawDepot({ drawing, look }, { at: [x, y], known, free, promised, scale }) {
  const size = DEPOT * scale;
  const box = [x - size / 2, y - size / 2, size, size];
  const full = !known || free > 0;
  drawing.beginPath();
  drawing.roundRect(...box, 4 * scale);
  drawing.fillStyle = full ? look.ink : look.paper;
  drawing.fill();
  drawing.setLineDash(full ? [] : [4, 3]);
  drawing.lineWidth = 2;
  drawing.strokeStyle = full ? look.paper : look.ink;
  drawing.stroke();
  drawing.setLineDash([]);
  word(drawing, look, known ? String(free) : "?", x, y, (free > 99 ? 11 : 16) * scale, full ? look.paper : look.ink);
  if (!promised.length) return;
  const [left, top, height] = [x + size / 2 - 2 * scale, y - 8 * scale, 16 * scale];
  const words = `+${promised.length}`;
  drawing.font = `700 ${12 * scale}px ${look.font}`;
  const width = drawing.measureText(words).width + 7 * scale;
  drawing.beginPath();
  drawing.roundRect(left, top, width, height, 8 * scale);
  drawing.fillStyle = look.paper;
  drawing.fill();
  drawing.lineWidth = 1;
  drawing.strokeStyle = look.ink;
  drawing.stroke();
  word(drawing, look, words, left + width / 2, top + height / 2, 12 * scale, look.ink);
}

function word(drawing, look, text, x, y, size, colour) {
  drawing.font = `800 ${size}px ${look.font}`;
  drawing.textAlign = "center";
  drawing.textBaseline = "alphabetic";
  drawing.fillStyle = colour;
  const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = drawing.measureText(text);
  drawing.fillText(text, x, y + (up - down) / 2);
}

/** The incident: rings that no other mark has. */
export function drawIncident({ drawing, scale }, x, y) {
  for (const [radius, colour] of [[17, "#fff"], [15, "#111"], [9, "#fff"], [6, "#111"], [3, "#fff"]]) {
    drawing.beginPath();
    drawing.arc(x, y, radius * scale, 0, TURN);
    drawing.fillStyle = colour;
    drawing.fill();
  }
}
