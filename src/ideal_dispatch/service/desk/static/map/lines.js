// Lines on the map: both ways to the incident, closed roads, and the line that is drawn to close one.

/** Both ways; the second's is dim where it is not sent. Stretches that both drive are wider below. */
export function drawWays({ drawing, look, project }, { primary, second, shared, sent }) {
  const lines = [primary, second, ...shared].map((line) => line.map(project));
  const [first, other, ...both] = lines;
  const way = (line, colour, width, dashes = []) => {
    path(drawing, line);
    drawing.lineCap = dashes.length ? "butt" : "round";
    stroke(drawing, colour, width, dashes);
  };
  drawing.lineJoin = "round";
  if (!sent) {
    drawing.globalAlpha = 0.5;
    way(other, look.casing, 4);
    way(other, look.second, 2.5, [9, 7]);
    drawing.globalAlpha = 1;
  }
  for (const line of sent ? both : []) {
    way(line, look.casing, 16);
    way(line, look.primary, 13);
  }
  way(first, look.casing, 9);
  if (sent) way(other, look.casing, 8);
  way(first, look.primary, 6);
  if (sent) way(other, look.second, 6, [13, 7]);
}

/** Closed roads look like tape; an area has stripes, too. */
export function drawClosure({ drawing, look, project }, { lines, polygon, active }) {
  drawing.globalAlpha = active ? 1 : 0.45;
  if (polygon) {
    path(drawing, polygon.map(project), true);
    drawing.fillStyle = stripes(drawing, look.closed);
    drawing.globalAlpha *= 0.5;
    drawing.fill();
    drawing.globalAlpha = active ? 1 : 0.45;
    stroke(drawing, look.closed, 1.5, [2, 4]);
  }
  drawing.lineCap = "butt";
  for (const line of lines) {
    path(drawing, line.map(project));
    stroke(drawing, look.casing, 8);
    stroke(drawing, "#ffffff", 6);
    stroke(drawing, look.closed, 6, [6, 6]);
  }
  drawing.globalAlpha = 1;
}

/** The points so far, and a cross where the next would be. */
export function drawDraft({ drawing, look, project }, { points, pointer }) {
  const places = points.map(project);
  const next = pointer && project(pointer);
  path(drawing, next ? [...places, next] : places);
  stroke(drawing, look.casing, 7);
  stroke(drawing, look.closed, 4, [8, 5]);
  for (const [x, y] of places) {
    drawing.beginPath();
    drawing.arc(x, y, 5, 0, 2 * Math.PI);
    drawing.fillStyle = look.closed;
    drawing.fill();
    stroke(drawing, look.ink, 2);
  }
  if (!next) return;
  const [x, y] = next;
  drawing.beginPath();
  for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
    drawing.moveTo(x + 4 * dx, y + 4 * dy);
    drawing.lineTo(x + 14 * dx, y + 14 * dy);
  }
  stroke(drawing, look.paper, 4);
  stroke(drawing, look.ink, 2);
}

function path(drawing, points, closed = false) {
  drawing.beginPath();
  for (const [x, y] of points) drawing.lineTo(x, y);
  if (closed) drawing.closePath();
}

function stroke(drawing, colour, width, dashes = []) {
  Object.assign(drawing, { strokeStyle: colour, lineWidth: width });
  drawing.setLineDash(dashes);
  drawing.stroke();
  drawing.setLineDash([]);
}

let tile = null;

function stripes(drawing, colour) {
  tile ??= striped(colour);
  return drawing.createPattern(tile, "repeat");
}

function striped(colour) {
  const made = document.createElement("canvas");
  made.width = made.height = 10;
  const one = made.getContext("2d");
  one.strokeStyle = colour;
  one.lineWidth = 2.5;
  one.beginPath();
  for (const shift of [-10, 0, 10]) {
    one.moveTo(shift - 1, 11);
    one.lineTo(shift + 11, -1);
  }
  one.stroke();
  return made;
}
