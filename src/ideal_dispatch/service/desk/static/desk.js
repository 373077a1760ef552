// The desk: starts, listens to the service, shows a call, and hears keys and buttons.

import { open, standing } from "./advice.js";
import { drawCalls, followSelection } from "./calls.js";
import { drawCityLine } from "./city_line.js";
import { now, useClock } from "./clock.js";
import { asks, doAsked, drawDispatch, leave, question, recall } from "./dispatch.js";
import { byId, write } from "./elements.js";
import { drawFacts, tickFacts } from "./facts.js";
import { clockTime, useZone } from "./format.js";
import { startKeys } from "./keys.js";
import { startLanguage, switchLanguage, t } from "./language.js";
import { Closing } from "./map/closing.js";
import { drawClosureList } from "./map/closures.js";
import { drawSymbols } from "./map/legend.js";
import { MapView } from "./map/map_view.js";
import { drawRemarks } from "./remarks.js";
import { accept, askOverride, chooseReason, dialogOpen, drawReply, startOverride } from "./reply.js";
import { ask, Events } from "./server.js";
import { showSignIn, signedIn, startSignIn } from "./sign_in.js";
import { play, soundOn, switchSound } from "./sound.js";
import { Store } from "./store.js";
import { startTheme, theme } from "./theme.js";
import { drawUnitList, showUnits } from "./unit_list.js";
import { drawVerdict, tickVerdict } from "./verdict.js";
import { drawWhatIf, drawWhy, startWhatIf } from "./why.js";

const TICK_MS = 250;
const GUARD_MS = 1000; // after the desk moved on by itself, a reply meant for the call before is void
const REFRESH_MS = 10_000;
const SIMULATED = { every_s: 6, count: 40 };

const store = new Store();
const unseen = new Set();
const view = new MapView(store);
const closing = new Closing(setClosures);
let events = null;

// --- drawing -------------------------------------------------------------------------

function draw() {
  const [advice, time] = [store.shown, now()];
  drawVerdict(advice, store, time);
  drawRemarks(advice, store, time);
  drawFacts(advice, store, time);
  drawWhy(advice);
  drawWhatIf(advice);
  view.draw();
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
  const before = byId("advice").dataset.standing;
  tickVerdict(advice, store, time);
  if (byId("advice").dataset.standing !== before) {
    drawRemarks(advice, store, time);
    view.draw();
  }
  tickFacts(advice, store, time);
  drawReply(advice, store, time);
  drawDispatch(store.dispatchOf(advice), store, time, !waitsForReply());
  drawCalls(store, unseen, time, choose);
  drawCity(time);
  view.drawTip();
  if (byId("units-dialog").open) drawUnitList(store, time);
  drawNext(waiting(time));
  write(byId("clock"), clockTime(time));
}

/** That something waits elsewhere, and what. */
function drawNext(advice) {
  byId("next").hidden = advice === null;
  const dispatch = advice && store.dispatches.get(advice.id);
  const words = advice && store.losses.has(advice.id) ? t("banner.lost") : t("banner.next");
  write(byId("next"), asks(dispatch) ? t("banner.asks", { question: question(dispatch) }) : words);
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

/** What the city is like, whichever call is shown. */
function drawCity(time) {
  drawCityLine(store, time);
  drawClosureList(store, time, (closure) => view.lookAt(closure), (closure) => closing.askEnd(closure));
  byId("close-road").hidden = !store.mayClose || !view.map;
  byId("closed-key").hidden = byId("closures-box").hidden;
}

// --- which call is shown -----------------------------------------------------------------

/** The dispatcher chose a call: following new ones would take it away. */
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

/** The newest call that waits: its advice was not looked at, or its dispatch asks something. */
function waiting(time) {
  return (
    store.list.find(
      (advice) =>
        (unseen.has(advice.id) && (open(advice, store, time) || store.losses.has(advice.id))) ||
        (advice.id !== store.selected && asks(store.dispatches.get(advice.id))),
    ) ?? null
  );
}

/**
 * Move to a new advice only where that takes nothing from under the dispatcher's hands. One that
 * is old when it comes is no news: it only joins the list.
 */
function arrived(advice) {
  const [before, known] = [store.shown, store.advices.has(advice.id)];
  store.put(advice);
  if (known) return draw();
  if (advice.simulated) store.simulated.left -= 1;
  if (standing(advice, store, now()) !== "open") return draw();
  play(advice.decision);
  const free = !before || store.follow || before.call_id === advice.call_id || !engaged(before);
  unseen.add(advice.id);
  if (!free || dialogOpen()) return draw();
  if (before) guard();
  return show(advice.id);
}

/** Does a call wait for a reply, or is its dispatch under way? */
function engaged(advice) {
  const dispatch = store.dispatchOf(advice);
  return (dispatch && dispatch.state !== "ended") || open(advice, store, now());
}

/** An advice lost a unit that it counted on: to another call, or to a breakdown. */
function lost(loss) {
  const before = store.losses.get(loss.id) ?? [];
  if (before.some(({ unit }) => unit === loss.unit)) return;
  store.losses.set(loss.id, [...before, loss]);
  if (loss.id !== store.selected) unseen.add(loss.id);
  play("send_second");
  draw();
}

// --- what people do ------------------------------------------------------------------------

const actions = {
  accept() {
    if (ready()) accept(store.shown, store, draw);
  },
  override() {
    if (ready()) askOverride(store.shown, store, draw);
  },
  do_asked() {
    if (asked()) doAsked(asked(), changed);
  },
  leave_asked() {
    if (asked()) leave(asked(), changed);
  },
  recall: () => recall(store.dispatchOf(store.shown), changed),
  /** A and O answer what waits for an answer: the advice, or else the question of its dispatch. */
  key_accept: () => (asked() && !waitsForReply() ? actions.do_asked() : actions.accept()),
  key_override: () => (asked() && !waitsForReply() ? actions.leave_asked() : actions.override()),
  close_road: () => store.mayClose && closing.start(view.map),
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
    view.restyle();
    drawLink();
    draw();
  },
  keys() {
    drawSymbols();
    byId("keys-dialog").showModal();
  },
  reason: chooseReason,
  units: () => store.fleet.known && showUnits(store, now()),
  whole: () => view.fit(null),
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

const ready = () => store.mayAnswer && !store.guarded && waitsForReply() && !byId("accept").disabled;

/** Does the shown advice itself wait for a reply? */
const waitsForReply = () => store.shown !== null && open(store.shown, store, now());

/** The dispatch of the shown call, if it asks something that may be answered now. */
function asked() {
  const dispatch = store.dispatchOf(store.shown);
  return asks(dispatch) && store.online && !store.guarded && !byId("running-buttons").hidden ? dispatch : null;
}

/** A reply was sent, or recorded: a second press of the same key must not answer something else. */
function changed(dispatch) {
  if (dispatch) {
    if (!(store.dispatches.get(dispatch.id)?.as_of > dispatch.as_of)) store.dispatches.set(dispatch.id, dispatch);
    guard();
  }
  draw();
}

function guard() {
  store.guardedUntil = performance.now() + GUARD_MS;
}

function step(by) {
  const advice = store.neighbour(by);
  if (advice) choose(advice.id);
}

// --- the service ------------------------------------------------------------------------------

async function load() {
  const [city, list, health, session, units, dispatches, closures] = await Promise.all([
    ask("v1/city"),
    ask("v1/recommendations?limit=50"),
    ask("healthz"),
    ask("v1/session"),
    ask("v1/units"),
    ask("v1/dispatches"),
    ask("v1/closures"),
  ]);
  if (city.simulated) {
    if (!store.city) store.follow = true; // a newcomer wants to see decisions flow
    store.simulated = await ask("v1/simulated-calls");
  }
  Object.assign(store, { city, health, closures, role: session.role });
  useClock(city.clock);
  useZone(city.time_zone);
  store.fleet.replaceAll(units);
  store.dispatches = new Map(dispatches.map((one) => [one.id, one]));
  store.replaceAll(list);
  for (const { id } of dispatches) await fetchAdvice(id);
}

/** What a stream that is resumed does not repeat: where units are, and how the service is. */
async function catchUp() {
  const [health, units] = await Promise.all([ask("healthz"), ask("v1/units")]);
  store.health = health;
  store.fleet.replaceAll(units);
}

/** A dispatch may run on after its advice has left the list. */
async function fetchAdvice(id) {
  if (store.advices.has(id)) return;
  const advice = await ask(`v1/recommendations/${encodeURIComponent(id)}`).catch(() => null);
  if (advice) store.put(advice);
}

/** The clock may be stepped, and how far the next call is from help changes with the units. */
async function refresh() {
  const city = store.online && (await ask("v1/city").catch(() => null));
  if (!city) return;
  store.city = city;
  useClock(city.clock);
}

function setClosures(list) {
  store.closures = list;
  drawCity(now());
  view.drawClosures();
}

/** News of a dispatch. A question about the shown call comes with a moment's rest for the keys. */
async function dispatched(news) {
  const before = store.dispatches.get(news.id);
  const isNew = asks(news) && before?.question?.id !== news.question.id;
  store.dispatches.set(news.id, news);
  await fetchAdvice(news.id);
  const shown = store.dispatchOf(store.shown) === news;
  if (isNew) play(news.question.advice);
  if (isNew && shown) guard();
  if (!shown) return;
  if (before?.state === news.state) tick();
  else draw();
  view.draw();
}

const hears = {
  recommendation: arrived,
  reply({ id, state, reply }) {
    const advice = store.advices.get(id);
    if (advice) store.put({ ...advice, state, reply });
    draw();
  },
  units(news) {
    const { known } = store.fleet;
    store.fleet.take(news);
    if (store.fleet.known === known) view.draw();
    else draw();
  },
  dispatch: dispatched,
  closures: setClosures,
  promise_lost: lost,
  health(news) {
    store.health = news;
    drawLink();
  },
};

function listen() {
  events?.stop();
  events = new Events({
    async onOpen(resumed) {
      await (resumed ? catchUp() : load());
      store.online = true;
      store.lostAt = null;
      drawLink();
      draw();
      view.start();
    },
    onLost() {
      store.lostAt ??= now();
      store.online = false;
      drawLink();
      draw();
    },
    onRefused: signIn,
    onEvent: (kind, data) => hears[kind]?.(data),
  });
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

async function start() {
  actions.theme = startTheme(() => view.restyle());
  await startLanguage();
  startSignIn(begin);
  byId("follow").addEventListener("change", actions.follow);
  startOverride();
  startWhatIf(() => store.shown);
  startKeys(actions);
  if (await signedIn()) begin();
  else signIn();
  setInterval(() => byId("desk").hidden || tick(), TICK_MS);
  setInterval(() => byId("desk").hidden || refresh(), REFRESH_MS);
}

start();
