// The map: MapLibre where the browser has WebGL2, Leaflet on canvas where it has not.
// Everything here may fail; the advice does not depend on it.

import { element } from "../elements.js";
import { t } from "../language.js";

const WAYS = { primary: "#56B4E9", second: "#E69F00", closed: "#D55E00", free: "#009E73", freeInk: "#ffffff" };
const LOOKS = {
  light: {
    ...WAYS, ground: "#eef0f2", road: "#b4bac2", casing: "#20262d",
    paper: "#ffffff", ink: "#14181c", soft: "#4a545e", going: "#ecc9dd", busy: "#d3d9df",
  },
  dark: {
    ...WAYS, ground: "#0f1418", road: "#3a444e", casing: "#000000",
    paper: "#0b0f12", ink: "#e9edf0", soft: "#a9b4be", going: "#6b3f58", busy: "#37434d",
  },
};

export const look = (theme) => LOOKS[theme];

/**
 * Draw a map in the container and hand it to `use`; null where none can be drawn. A map whose
 * graphics the browser takes away later is replaced, and the new one is handed over.
 */
export async function startMap(container, network, theme, use, kinds = usableKinds()) {
  const [kind, ...others] = kinds;
  if (!kind) return use(null);
  const next = () => startMap(container, network, theme, use, others);
  try {
    const { create } = await import(`./map_${kind}.js`);
    const map = await create(container, network, look(theme()), () => {
      map.remove();
      next();
    });
    container.dataset.drawnBy = kind;
    return use(map);
  } catch (error) {
    console.warn(`map by ${kind}: ${error.message}`);
    container.replaceChildren();
    return next();
  }
}

function usableKinds() {
  const context = document.createElement("canvas").getContext("webgl2");
  context?.getExtension("WEBGL_lose_context")?.loseContext(); // browsers allow only so many
  return context ? ["maplibre", "leaflet"] : ["leaflet"];
}

export async function addStyles(address) {
  if (document.querySelector(`link[href="${address}"]`)) return;
  const link = element("link", { rel: "stylesheet", href: address });
  const loaded = new Promise((resolve, reject) => {
    link.addEventListener("load", resolve);
    link.addEventListener("error", () => reject(new Error(address)));
  });
  document.head.prepend(link); // the desk's own rules come later and win
  await loaded;
}

/** The least box around all points, as [west, south, east, north]; null without points. */
export function bounds(points) {
  if (!points.length) return null;
  const [lons, lats] = [points.map(([lon]) => lon), points.map(([, lat]) => lat)];
  const least = (list) => list.reduce((a, b) => Math.min(a, b));
  const most = (list) => list.reduce((a, b) => Math.max(a, b));
  return [least(lons), least(lats), most(lons), most(lats)];
}

export const networkPoints = (network) =>
  network.features.flatMap(({ geometry }) => geometry.coordinates);

/** Width of a road in pixels: arterial roads are wider where the network says which they are. */
export function roadWidth({ road_class: kind }) {
  if (/^(motorway|trunk|primary)/.test(kind ?? "")) return 3;
  return /^(secondary|tertiary)/.test(kind ?? "") ? 2 : 1.2;
}

/** A depot with its free units; those promised to calls are beside them, and not among them. */
export function depotMarker({ name, units, promised = [], ids = [] }) {
  const free = units === null ? null : Math.max(units - promised.length, 0);
  const none = free === 0 ? "yes" : null;
  const box = element("span", { class: "units", "data-none": none }, free === null ? "?" : String(free));
  if (ids.length) box.title = ids.join(", ");
  if (promised.length) {
    const calls = promised.map((one) => one.call_id).join(", ");
    const words = t("map.promised", { free: free ?? "?", promised: promised.length, calls });
    box.title = ids.length ? `${words}\n${box.title}` : words;
    box.append(element("sup", { role: "img", "aria-label": words }, `+${promised.length}`));
  }
  const label = element("span", { class: "name" }, name);
  return element("div", { class: "depot-marker" }, box, label);
}

/**
 * Write the names of depots beside them where they cover nothing, the first ones first. A name
 * without room is left out until somebody looks closer.
 */
export function placeNames(container, overlay) {
  const frame = container.getBoundingClientRect();
  const marks = [...container.parentElement.querySelectorAll(MARKS)].map((mark) => mark.getBoundingClientRect());
  const taken = [...marks, ...overlay.rings(frame)];
  for (const name of container.querySelectorAll(".depot-marker .name")) {
    const side = SIDES.find((one) => {
      name.dataset.side = one;
      const box = name.getBoundingClientRect();
      return within(box, frame) && !taken.some((other) => overlap(box, other));
    });
    name.dataset.side = side ?? "none";
    if (!side) continue;
    marks.push(name.getBoundingClientRect());
    taken.push(marks.at(-1));
  }
  overlay.avoid(marks, frame);
}

const MARKS = ".units, .incident-marker, .whole, .legend, .maplibregl-ctrl-group, .leaflet-bar";
const SIDES = ["below", "above", "right", "left"];

const within = (box, frame) =>
  box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;

const overlap = (a, b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

export const incidentMarker = () =>
  element("div", { class: "incident-marker", role: "img", "aria-label": t("map.incident") });
