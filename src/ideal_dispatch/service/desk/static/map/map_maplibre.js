// The map drawn by MapLibre, from the service's own road network: no tiles, no fonts, no internet.

import { addStyles, bounds, depotMarker, incidentMarker, networkPoints, placeNames, roadWidth } from "./map.js";
import { Overlay } from "./overlay.js";

const PADDING = { top: 56, bottom: 72, left: 72, right: 72 };
const CITY = { top: 16, bottom: 48, left: 56, right: 56 };

export async function create(container, network, look, onLost) {
  const [library] = await Promise.all([
    import("../libraries/maplibre-gl/maplibre-gl.mjs"),
    addStyles("libraries/maplibre-gl/maplibre-gl.css"),
  ]);
  const roads = {
    ...network,
    features: network.features.map((feature) => ({
      ...feature,
      properties: { width: roadWidth(feature.properties ?? {}) },
    })),
  };
  const everything = bounds(networkPoints(network));
  const map = new library.Map({
    container,
    style: style(roads, look),
    bounds: everything,
    fitBoundsOptions: { padding: CITY },
    attributionControl: false,
    dragRotate: false,
    pitchWithRotate: false,
    fadeDuration: 0,
    trackResize: false,
  });
  map.touchZoomRotate.disableRotation();
  map.addControl(new library.NavigationControl({ showCompass: false }), "top-right");
  await new Promise((resolve, reject) => {
    map.once("load", resolve);
    map.once("error", ({ error }) => reject(error));
  });
  map.on("webglcontextlost", onLost);
  return new MapLibreMap(library, map, everything, look);
}

class MapLibreMap {
  constructor(library, map, everything, look) {
    Object.assign(this, { library, map, everything, markers: [] });
    this.overlay = new Overlay(map.getContainer(), (place) => {
      const { x, y } = map.project(place);
      return [x, y];
    });
    this.overlay.use(look);
    map.on("move", () => this.overlay.draw());
    map.on("resize", () => this.overlay.draw());
    map.on("moveend", () => placeNames(map.getContainer(), this.overlay));
  }

  show({ primary, second, shared, incident }, depots) {
    this.map.getSource("primary").setData(lines([primary]));
    this.map.getSource("second").setData(lines([second]));
    this.map.getSource("shared").setData(lines(shared));
    for (const marker of this.markers) marker.remove();
    this.markers = depots.map((depot) => this.mark(depotMarker(depot), [depot.lon, depot.lat]));
    if (incident) this.markers.push(this.mark(incidentMarker(), incident));
    placeNames(this.map.getContainer(), this.overlay);
  }

  mark(node, place) {
    return new this.library.Marker({ element: node, anchor: "center" }).setLngLat(place).addTo(this.map);
  }

  resize() {
    this.map.resize();
  }

  /** Look at a box, or at the whole city. */
  fit(box) {
    const padding = box ? PADDING : CITY;
    this.map.fitBounds(box ?? this.everything, { padding, maxZoom: 16, duration: 0 });
  }

  /** Tell `heard` of every click at a place, until the function that this returns is called. */
  onClick(heard) {
    const told = ({ lngLat: { lng, lat } }) => heard([lng, lat]);
    this.map.on("click", told);
    this.map.doubleClickZoom.disable();
    return () => {
      this.map.off("click", told);
      this.map.doubleClickZoom.enable();
    };
  }

  /** The place at a point of the container. */
  at(x, y) {
    return this.map.unproject([x, y]).toArray();
  }

  use(look) {
    this.overlay.use(look);
    this.map.setPaintProperty("ground", "background-color", look.ground);
    this.map.setPaintProperty("roads", "line-color", look.road);
    for (const layer of ["shared-casing", "primary-casing", "second-casing"]) {
      this.map.setPaintProperty(layer, "line-color", look.casing);
    }
  }

  remove() {
    this.overlay.remove();
    this.map.remove();
  }
}

function lines(list) {
  const features = list
    .filter((coordinates) => coordinates.length > 1)
    .map((coordinates) => ({
      type: "Feature",
      properties: {},
      geometry: { type: "LineString", coordinates },
    }));
  return { type: "FeatureCollection", features };
}

function style(roads, look) {
  const empty = { type: "geojson", data: lines([]) };
  const line = (id, source, color, width, more = {}) => ({
    id,
    source,
    type: "line",
    layout: { "line-cap": more["line-dasharray"] ? "butt" : "round", "line-join": "round" },
    paint: { "line-color": color, "line-width": width, ...more },
  });
  const byZoom = ["interpolate", ["exponential", 1.4], ["zoom"]];
  const roadsWide = [...byZoom, 11, ["*", 0.6, ["get", "width"]], 16, ["*", 3.2, ["get", "width"]]];
  return {
    version: 8,
    sources: {
      roads: { type: "geojson", data: roads },
      primary: empty,
      second: empty,
      shared: empty,
    },
    layers: [
      { id: "ground", type: "background", paint: { "background-color": look.ground } },
      line("roads", "roads", look.road, roadsWide),
      line("shared-casing", "shared", look.casing, 16),
      line("shared", "shared", look.primary, 13),
      line("primary-casing", "primary", look.casing, 9),
      line("second-casing", "second", look.casing, 8),
      line("primary", "primary", look.primary, 6),
      line("second", "second", look.second, 6, { "line-dasharray": [2.2, 1.1] }),
    ],
  };
}
