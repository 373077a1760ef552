// The desk: starts, listens to the service, shows a call, and hears keys and buttons.

import { answerable, oldBecause, open, scene } from "./advice.js";
import { accept, askOverride, chooseReason, dialogOpen, drawAnswer, startOverride } from "./answer.js";
import { drawCalls, followSelection } from "./calls.js";
import { now } from "./clock.js";
import { byId, write } from "./elements.js";
import { drawFacts, tickAges } from "./facts.js";
import { clockTime, useZone } from "./format.js";
import { startKeys } from "./keys.js";
import { startLanguage, switchLanguage, t } from "./language.js";
import { bounds, look, startMap } from "./map.js";
import { drawRemarks } from "./remarks.js";
import { ask, Events } from "./server.js";
import { showSignIn, signedIn, startSignIn } from "./sign_in.js";
import { play, soundOn, switchSound } from "./sound.js";
import { Store } from "./store.js";
import { startTheme, theme } from "./theme.js";
import { drawVerdict, tickVerdict } from "./verdict.js";
import { drawWhatIf, drawWhy, startWhatIf } from "./why.js";

const TICK_MS = 250;
const GUARD_MS = 1000; // after the desk moved on by itself, an answer meant for the call before is void
const ROADS_PATIENCE_MS = 120_000; // a large city's take seconds to make, many more on a busy server
const ROADS_AGAIN_MS = 5000;
const SIMULATED = { every_s: 6, count: 40 };

const store = new Store();
const unseen = new Set();
let events = null;
let map = null;
let mapping = false; // a map is being made
let mapped = null; // what the map last looked at

// --- drawing -------------------------------------------------------------------------

function draw() {
  const [advice, time] = [store.shown, now()];
  drawVerdict(advice, store, time);
  drawRemarks(advice);
  drawFacts(advice, store.city);
  drawWhy(advice);
  drawWhatIf(advice);
  drawMap();
  write(byId("city"), store.city?.name ?? "");
  byId("simulated").hidden = byId("simulate").hidden = !store.city?.simulated;
  const calling = store.simulated.left > 0;
  write(byId("simulate"), t(calling ? "tools.simulate.stop" : "tools.simulate"));
  byId("simulate").setAttribute("aria-pressed", String(calling));
  write(byId("sound"), t(soundOn() ? "tools.sound.on" : "tools.sound.off"));
  byId("sound").setAttribute("aria-pressed", String(soundOn()));
  write(byId("theme"), t(`tools.theme.${theme() === "dark" ? "light" : "dark"}`));
  byId("follow").checked = store.follow;
  tick();
}

/** What changes with time alone. */
function tick() {
  const [advice, time] = [store.shown, now()];
  tickVerdict(advice, store, time);
  tickAges(advice, time);
  drawAnswer(advice, store, time);
  drawCalls(store, unseen, time, choose);
  byId("next").hidden = waiting(time) === null;
  write(byId("clock"), clockTime(time));
}

function drawLink() {
  const wrong = Object.entries(store.health?.parts ?? {}).filter(([, words]) => words !== "ready");
  const live = wrong.length ? "impaired" : "live";
  const state = store.online ? live : store.lostAt ? "lost" : "connecting";
  const parts = wrong.map(([part]) => t(`part.${part}`)).join(", ");
  byId("link").dataset.link = state;
  byId("link").title = wrong.map(([part, words]) => `${part}: ${words}`).join("; ");
  write(byId("link").lastElementChild, t(`link.${state}`, { parts }));
  byId("lost").hidden = state !== "lost";
  if (state === "lost") {
    const words = t("link.banner", { time: clockTime(store.lostAt) });
    write(byId("lost").querySelector("strong"), words);
  }
}

function drawMap() {
  if (!map) return;
  const shown = scene(store.shown);
  const concerned = [store.shown?.primary?.depot, store.shown?.second?.depot];
  const depots = (store.city?.depots ?? [])
    .map((depot) => ({ ...depot, ...store.units.get(depot.name) }))
    .sort((a, b) => concerned.includes(b.name) - concerned.includes(a.name)); // named first
  map.show(shown, depots);
  if (mapped === store.selected) return; // a dispatcher who moved the map keeps it
  mapped = store.selected;
  const place = shown.incident && inside(shown.incident) ? [shown.incident] : [];
  map.fit(bounds([...shown.primary, ...shown.second, ...place]));
}

/** Is a place in the city? A mistaken one would leave the map empty. */
function inside([lon, lat]) {
  const [west, south, east, north] = store.city.bounds;
  return west <= lon && lon <= east && south <= lat && lat <= north;
}

// --- which call is shown -----------------------------------------------------------------

/** Somebody chose a call: following new ones would take it away. */
function choose(id) {
  if (id !== store.list[0]?.id) store.follow = false;
  show(id);
}

function show(id) {
  store.selected = id;
  unseen.delete(id);
  draw();
  followSelection();
}

/** The newest call that nobody has looked at and that still can be answered. */
function waiting(time) {
  return store.list.find((advice) => unseen.has(advice.id) && open(advice, store, time)) ?? null;
}

/**
 * Move to a new advice only where that takes nothing from under the dispatcher's hands. One that
 * is old when it comes (the database was away) is no news: it only joins the list.
 */
function arrived(advice) {
  const before = store.shown;
  if (store.advices.has(advice.id)) return; // told twice, the second time without its response
  store.put(advice);
  if (advice.simulated) store.simulated.left -= 1;
  if (oldBecause(advice, store, now())) return draw();
  play(advice.decision);
  const free =
    !before || store.follow || before.call_id === advice.call_id || !open(before, store, now());
  unseen.add(advice.id);
  if (!free || dialogOpen()) return draw();
  if (before) store.guardedUntil = performance.now() + GUARD_MS;
  return show(advice.id);
}

// --- what people do ------------------------------------------------------------------------

const actions = {
  accept() {
    if (ready() && store.shown.response?.action !== "accept") accept(store.shown, draw);
  },
  override() {
    if (ready()) askOverride(store.shown);
  },
  older: () => step(1),
  newer: () => step(-1),
  newest() {
    const target = waiting(now()) ?? store.list[0];
    if (target) choose(target.id);
  },
  follow() {
    store.follow = !store.follow;
    draw();
  },
  sound() {
    switchSound();
    draw();
  },
  theme: () => {}, // set when the theme starts
  async language() {
    await switchLanguage();
    drawLink();
    draw();
  },
  keys: () => byId("keys-dialog").showModal(),
  reason: chooseReason,
  whole: () => map?.fit(null),
  async simulate() {
    const wanted = store.simulated.left > 0 ? { ...SIMULATED, count: 0 } : SIMULATED;
    store.simulated = await ask("v1/simulated-calls", "POST", wanted).catch(() => store.simulated);
    store.follow = store.simulated.left > 0;
    draw();
  },
  async sign_out() {
    await ask("v1/session", "DELETE").catch(() => null);
    location.reload();
  },
};

function ready() {
  const advice = store.shown;
  return advice && !store.guarded && answerable(advice, store, now());
}

function step(by) {
  const advice = store.neighbour(by);
  if (advice) choose(advice.id);
}

// --- the service ------------------------------------------------------------------------------

async function load() {
  const [city, units, list, health] = await Promise.all([
    ask("v1/city"),
    ask("v1/units"),
    ask("v1/recommendations?limit=50"),
    ask("healthz"),
  ]);
  if (city.simulated) {
    if (!store.city) store.follow = true; // a newcomer wants to see decisions flow
    store.simulated = await ask("v1/simulated-calls");
  }
  Object.assign(store, { city, health });
  useZone(city.time_zone);
  setUnits(units);
  store.replaceAll(list);
}

function setUnits(list) {
  store.units = new Map(list.map(({ depot, units, promised }) => [depot, { units, promised }]));
}

function listen() {
  events?.stop();
  events = new Events({
    async onOpen() {
      await load(); // whatever happened while nobody listened
      store.online = true;
      store.lostAt = null;
      drawLink();
      draw();
      drawNetwork();
    },
    onLost() {
      store.lostAt ??= now();
      store.online = false;
      drawLink();
      draw();
    },
    onRefused: signIn,
    onEvent(kind, data) {
      if (kind === "recommendation") arrived(data);
      if (kind === "response") answered(data);
      if (kind === "units") {
        setUnits(data);
        drawMap();
      }
      if (kind === "health") {
        store.health = data;
        drawLink();
      }
    },
  });
}

function answered(data) {
  const advice = store.advices.get(data.recommendation_id);
  if (advice) advice.response = data.response;
  draw();
}

// --- start -----------------------------------------------------------------------------------

function signIn() {
  events?.stop();
  byId("desk").hidden = true;
  showSignIn();
}

function begin() {
  byId("desk").hidden = false;
  drawLink();
  draw();
  listen();
}

/** Draw the map, unless there is one or one is on its way. */
async function drawNetwork() {
  if (map || mapping) return;
  mapping = true;
  sayOfMap("map.waiting");
  try {
    const network = await ask("v1/network.geojson", "GET", undefined, ROADS_PATIENCE_MS);
    await startMap(byId("map"), network, theme, useMap);
  } catch {
    setTimeout(() => byId("desk").hidden || drawNetwork(), ROADS_AGAIN_MS);
  } finally {
    mapping = false;
  }
}

function useMap(drawn) {
  map = drawn;
  sayOfMap(map ? null : "map.missing");
  mapped = undefined;
  drawMap();
}

/** Why there is no map, in the words of a key; null where there is one. */
function sayOfMap(key) {
  const note = byId("map-missing");
  note.hidden = key === null;
  if (key) note.dataset.t = key;
  write(note, t(note.dataset.t));
}

async function start() {
  actions.theme = startTheme(() => map?.use(look(theme())));
  await startLanguage();
  startSignIn(begin);
  byId("follow").addEventListener("change", actions.follow);
  startOverride(draw);
  startWhatIf(() => store.shown);
  startKeys(actions);
  if (await signedIn()) begin();
  else signIn();
  setInterval(() => byId("desk").hidden || tick(), TICK_MS);
}

start();
