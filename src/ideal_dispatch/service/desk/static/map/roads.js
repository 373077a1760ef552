// The roads of the city on one canvas: packed once, drawn as a few long paths. The canvas is larger
// than the window on it and moves with the map, so that most of a pan draws nothing.

const MARGIN = 0.35; // of the window, on each side
const AT_ONCE = 2000; // lines of a stroke: a path with all of a city's is slow to fill
const MINOR_M = 22; // metres a pixel: from farther away minor roads are a grey veil
const HAIR_M = 9; // from farther away all are hairlines, which are drawn much faster

/** From minor to major: what is drawn later lies above. */
const CLASSES = [
  { width: 1.2, of: () => true },
  { width: 2, of: (kind) => /^(secondary|tertiary)/.test(kind) },
  { width: 3, of: (kind) => /^(motorway|trunk|primary)/.test(kind) },
];

export class Roads {
  constructor(library, map, network) {
    Object.assign(this, { library, map });
    const lines = CLASSES.map(() => []);
    for (const { geometry, properties } of network.features) {
      const kind = properties?.road_class ?? "";
      lines[CLASSES.findLastIndex(({ of }) => of(kind))].push(geometry.coordinates);
    }
    this.packed = lines.map(pack);
    this.canvas = library.DomUtil.create("canvas", "roads", map.getPane("tilePane"));
    map.on("move", () => this.covers() || this.draw());
    map.on("zoomend resize", () => this.draw());
  }

  use(look) {
    this.look = look;
    this.draw();
  }

  /** Does the canvas still reach beyond the window on all sides? */
  covers() {
    const { x, y } = this.map.containerPointToLayerPoint([0, 0]).subtract(this.corner);
    const { x: width, y: height } = this.map.getSize();
    return x >= 0 && y >= 0 && x + width <= this.width && y + height <= this.height;
  }

  draw() {
    const { map, canvas } = this;
    const size = map.getSize();
    if (!size.x || !this.look) return;
    const margin = size.multiplyBy(MARGIN).round();
    const ratio = Math.min(devicePixelRatio, 2);
    const [width, height] = [size.x + 2 * margin.x, size.y + 2 * margin.y];
    if (width !== this.width || height !== this.height || ratio !== this.ratio) {
      Object.assign(this, { width, height, ratio });
      Object.assign(canvas, { width: width * ratio, height: height * ratio });
      Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    }
    this.corner = map.containerPointToLayerPoint(margin.multiplyBy(-1)).round();
    this.library.DomUtil.setPosition(canvas, this.corner);
    const drawing = canvas.getContext("2d");
    const world = 256 * 2 ** map.getZoom(); // pixels around the Earth
    const origin = map.getPixelOrigin().add(this.corner);
    drawing.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawing.clearRect(0, 0, width, height);
    drawing.strokeStyle = this.look.road;
    drawing.lineJoin = "round";
    const far = metresPerPixel(map);
    const scale = Math.min(3, Math.max(0.5, 1.4 ** (map.getZoom() - 14)));
    this.packed.forEach((lines, rank) => {
      if (rank === 0 && far > MINOR_M) return;
      drawing.lineWidth = far > HAIR_M ? 1 : Math.max(1, scale * CLASSES[rank].width);
      drawing.globalAlpha = far > HAIR_M ? [0.55, 0.8, 1][rank] : 1;
      strokeLines(drawing, lines, world, origin, width, height);
    });
  }

  remove() {
    this.canvas.remove();
  }
}

export function metresPerPixel(map) {
  const { lat } = map.getCenter();
  return (40_075_016 * Math.cos((lat * Math.PI) / 180)) / (256 * 2 ** map.getZoom());
}

/** Lines as parts of the world's width from its north-west corner, all in one array, with their boxes. */
function pack(lines) {
  const ends = new Uint32Array(lines.length);
  const boxes = new Float64Array(4 * lines.length);
  const points = new Float64Array(2 * lines.reduce((sum, line) => sum + line.length, 0));
  let at = 0;
  lines.forEach((line, n) => {
    let [west, north, east, south] = [1, 1, 0, 0];
    for (const [lon, lat] of line) {
      const x = lon / 360 + 0.5;
      const y = 0.5 - Math.asinh(Math.tan((lat * Math.PI) / 180)) / (2 * Math.PI);
      points[at] = x;
      points[at + 1] = y;
      at += 2;
      [west, east] = [Math.min(west, x), Math.max(east, x)];
      [north, south] = [Math.min(north, y), Math.max(south, y)];
    }
    ends[n] = at;
    boxes.set([west, north, east, south], 4 * n);
  });
  return { ends, boxes, points };
}

function strokeLines(drawing, { ends, boxes, points }, world, origin, width, height) {
  const [west, north] = [origin.x / world, origin.y / world];
  const [east, south] = [(origin.x + width) / world, (origin.y + height) / world];
  let [from, waiting] = [0, 0];
  drawing.beginPath();
  for (let n = 0; n < ends.length; n += 1) {
    const box = 4 * n;
    const to = ends[n];
    if (boxes[box] < east && boxes[box + 2] > west && boxes[box + 1] < south && boxes[box + 3] > north) {
      drawing.moveTo(points[from] * world - origin.x, points[from + 1] * world - origin.y);
      for (let at = from + 2; at < to; at += 2) {
        drawing.lineTo(points[at] * world - origin.x, points[at + 1] * world - origin.y);
      }
      waiting += 1;
    }
    from = to;
    if (waiting === AT_ONCE) {
      drawing.stroke();
      drawing.beginPath();
      waiting = 0;
    }
  }
  drawing.stroke();
}
