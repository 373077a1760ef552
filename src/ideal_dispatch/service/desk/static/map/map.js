// The map: Leaflet moves it, the roads lie on one canvas, and all that lives on another above.
// Everything here may fail; the advice does not depend on it.

import { Overlay } from "./overlay.js";
import { Roads } from "./roads.js";

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

/** A map of the network in the container; fails where the browser cannot draw one. */
export async function startMap(container, network) {
  await import("../libraries/leaflet/leaflet.js");
  return new DeskMap(globalThis.L, container, network);
}

/** The least box around all points, as [west, south, east, north]; null without points. */
export function bounds(points) {
  if (!points.length) return null;
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [lon, lat] of points) {
    [box[0], box[1]] = [Math.min(box[0], lon), Math.min(box[1], lat)];
    [box[2], box[3]] = [Math.max(box[2], lon), Math.max(box[3], lat)];
  }
  return box;
}

class DeskMap {
  constructor(library, container, network) {
    this.map = library.map(container, {
      attributionControl: false,
      zoomControl: false,
      zoomSnap: 0.25,
      zoomAnimation: false,
      fadeAnimation: false,
      trackResize: false,
    });
    library.control.zoom({ position: "topright" }).addTo(this.map);
    this.everything = bounds(network.features.flatMap(({ geometry }) => geometry.coordinates));
    this.fit(null);
    this.roads = new Roads(library, this.map, network);
    this.overlay = new Overlay(container, ([lon, lat]) => {
      const { x, y } = this.map.latLngToContainerPoint([lat, lon]);
      return [x, y];
    });
    this.map.on("move resize", () => this.overlay.draw());
  }

  use(look) {
    this.roads.use(look);
    this.overlay.use(look);
  }

  resize() {
    this.map.invalidateSize({ animate: false });
  }

  /** Look at a box, or at the whole city; the legend below hides nothing of it. */
  fit(box) {
    const [west, south, east, north] = box ?? this.everything;
    const below = document.querySelector(".legend").offsetHeight;
    this.overlay?.sides.clear();
    const [side, edge] = box ? [60, 52] : [24, 20];
    this.map.fitBounds([[south, west], [north, east]], {
      paddingTopLeft: [side, edge],
      paddingBottomRight: [side, edge + below],
      maxZoom: 16,
      animate: false,
    });
  }

  /** Call `heard` with the place of every click, until the function that this returns is called. */
  onClick(heard) {
    const clicked = ({ latlng: { lat, lng } }) => heard([lng, lat]);
    this.map.on("click", clicked);
    this.map.doubleClickZoom.disable();
    return () => {
      this.map.off("click", clicked);
      this.map.doubleClickZoom.enable();
    };
  }

  /** The place at a point of the container. */
  at(x, y) {
    const { lat, lng } = this.map.containerPointToLatLng([x, y]);
    return [lng, lat];
  }
}
