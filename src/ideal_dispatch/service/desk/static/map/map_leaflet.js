// The same map by Leaflet on a plain canvas, for browsers without WebGL2.

import { addStyles, bounds, depotMarker, incidentMarker, networkPoints, placeNames, roadWidth } from "./map.js";
import { Overlay } from "./overlay.js";

export async function create(container, network, look) {
  await Promise.all([
    import("../libraries/leaflet/leaflet.js"),
    addStyles("libraries/leaflet/leaflet.css"),
  ]);
  const library = globalThis.L;
  const map = library.map(container, {
    renderer: library.canvas({ padding: 0.5 }),
    attributionControl: false,
    zoomControl: false,
    zoomSnap: 0.25,
    zoomAnimation: false,
    trackResize: false,
    fadeAnimation: false,
  });
  library.control.zoom({ position: "topright" }).addTo(map);
  return new LeafletMap(library, map, network, look);
}

class LeafletMap {
  constructor(library, map, network, look) {
    Object.assign(this, { library, map, look });
    this.everything = box(bounds(networkPoints(network)));
    map.fitBounds(this.everything);
    // one layer a width: a city has tens of thousands of roads
    const widths = new Map();
    for (const { geometry, properties } of network.features) {
      const width = roadWidth(properties ?? {});
      if (!widths.has(width)) widths.set(width, []);
      widths.get(width).push(geometry.coordinates.map(flip));
    }
    this.roads = [...widths].map(([width, lines]) => (
      [width, library.polyline(lines, { interactive: false }).addTo(map)]
    ));
    this.drawn = library.layerGroup().addTo(map);
    this.overlay = new Overlay(map.getContainer(), (place) => {
      const { x, y } = map.latLngToContainerPoint(flip(place));
      return [x, y];
    });
    map.on("move resize", () => this.overlay.draw());
    map.on("zoomend", () => this.paint());
    map.on("moveend", () => placeNames(map.getContainer(), this.overlay));
    this.use(look);
  }

  show(scene, depots) {
    this.last = [scene, depots];
    const { primary, second, shared, incident } = scene;
    this.drawn.clearLayers();
    for (const stretch of shared) {
      this.line(stretch, this.look.casing, 16);
      this.line(stretch, this.look.primary, 13);
    }
    this.line(primary, this.look.casing, 9);
    this.line(second, this.look.casing, 8);
    this.line(primary, this.look.primary, 6);
    this.line(second, this.look.second, 6, { dashArray: "13 7", lineCap: "butt" });
    for (const depot of depots) this.mark(depotMarker(depot), [depot.lon, depot.lat]);
    if (incident) this.mark(incidentMarker(), incident);
    placeNames(this.map.getContainer(), this.overlay);
  }

  line(coordinates, color, weight, more = {}) {
    if (coordinates.length < 2) return;
    const options = { color, weight, opacity: 1, interactive: false, smoothFactor: 0, ...more };
    this.library.polyline(coordinates.map(flip), options).addTo(this.drawn);
  }

  mark(node, place) {
    const icon = this.library.divIcon({ html: node, className: "leaflet-mark", iconSize: [0, 0] });
    const options = { icon, interactive: false, keyboard: false };
    this.library.marker(flip(place), options).addTo(this.drawn);
  }

  resize() {
    this.map.invalidateSize({ animate: false });
  }

  fit(place) {
    this.map.fitBounds(place ? box(place) : this.everything, {
      paddingTopLeft: [72, 56],
      paddingBottomRight: [72, 72],
      maxZoom: 16,
      animate: false,
    });
  }

  /** Tell `heard` of every click at a place, until the function that this returns is called. */
  onClick(heard) {
    const told = ({ latlng: { lat, lng } }) => heard([lng, lat]);
    this.map.on("click", told);
    this.map.doubleClickZoom.disable();
    return () => {
      this.map.off("click", told);
      this.map.doubleClickZoom.enable();
    };
  }

  /** The place at a point of the container. */
  at(x, y) {
    const { lat, lng } = this.map.containerPointToLatLng([x, y]);
    return [lng, lat];
  }

  use(look) {
    this.look = look;
    this.paint();
    this.overlay.use(look);
    if (this.last) this.show(...this.last);
  }

  paint() {
    const scale = Math.min(3, Math.max(0.5, 1.4 ** (this.map.getZoom() - 14)));
    for (const [width, roads] of this.roads) {
      roads.setStyle({ color: this.look.road, weight: scale * width, opacity: 1 });
    }
  }

  remove() {
    this.overlay.remove();
    this.map.remove();
  }
}

const flip = ([lon, lat]) => [lat, lon];
const box = ([west, south, east, north]) => [
  [south, west],
  [north, east],
];
