// The running dispatch of the shown call: who is expected when, and whether to change it.

import { askReasons, responseValues } from "./answer.js";
import { byId, element, write } from "./elements.js";
import { clockTime, countdown } from "./format.js";
import { knows, language, t } from "./language.js";
import { ask } from "./server.js";

let pending = null; // the advice_id whose reply is on its way
let failed = null; // [advice_id, message] of the last reply that was not recorded
let said = "";

/** Does it ask something that waits for a reply? */
export const asks = (dispatch) =>
  ["running", "stood_down"].includes(dispatch?.state) && dispatch.advice !== "keep" && !dispatch.response;

/** Was the second stood down, and no other sent since? */
export const stoodDown = (dispatch) =>
  dispatch?.state === "stood_down" || (dispatch?.advice === "stand_down" && dispatch.response?.action === "accept");

const secondOf = ({ second }) => second?.unit ?? second?.depot ?? "";

/** The question in a few words; whom to send is named where the service says it. */
export function question(dispatch) {
  const sent = dispatch.advice === "send_one";
  const who = sent ? dispatch.proposed?.unit : secondOf(dispatch);
  return t(who ? `running.${dispatch.advice}` : "running.send_any", { who });
}

/** Draw it; `keysFree` says that A and O have no other work. */
export function drawDispatch(dispatch, store, now, keysFree) {
  const box = byId("running");
  box.hidden = !dispatch;
  announce(dispatch);
  const asking = asks(dispatch);
  const usable = asking && store.online && pending === null && !store.guarded;
  for (const [id, key] of [["running-accept", "A D"], ["running-override", "O L"]]) {
    byId(id).disabled = !usable;
    write(byId(id).querySelector("kbd"), key.split(" ")[keysFree ? 0 : 1]);
  }
  byId("running-buttons").hidden = !asking || !store.mayAnswer;
  if (!dispatch) return;
  box.dataset.asks = asking ? dispatch.advice : "";
  box.dataset.keys = asking && keysFree ? "a" : "d";
  write(byId("running-words"), words(dispatch));
  write(byId("running-reason"), reason(dispatch));
  byId("running-reason").lang = dispatch.response || translated(dispatch) ? language() : "en";
  drawExpected(dispatch, now);
}

function words(dispatch) {
  if (dispatch.response) return answered(dispatch);
  if (asks(dispatch)) return question(dispatch);
  const there = ["primary", "second"].map((role) => dispatch[role]).find((one) => one?.status === "on_scene");
  if (dispatch.state === "ended" && there) return t("running.there", { who: there.unit ?? there.depot });
  return t(`running.${dispatch.state}`, { time: clockTime(dispatch.started_at, false) });
}

function reason(dispatch) {
  const own = failed?.[0] === dispatch.advice_id;
  if (pending === dispatch.advice_id && pending) return t("answer.sending");
  if (own && failed) return t("answer.failed", { message: failed[1] });
  return dispatch.state === "ended" ? "" : because(dispatch);
}

const translated = ({ reasons }) => reasons.every(({ code }) => knows(`because.${code}`));

/** Why it is advised: in the reader's language where its codes are known, else as the service says it. */
function because(dispatch) {
  if (!translated(dispatch)) return dispatch.reason;
  return dispatch.reasons.map(({ code, values }) => t(`because.${code}`, shown(values))).join("；");
}

/** Numbers of reasons for people: lives of 10,000, a chance in percent. */
function shown({ saves, cost, chance, ...others }) {
  const lives = (share) => (share > 0 && share < 5e-7 ? "< 0.005" : String(Number((1e4 * share).toPrecision(2))));
  return { ...others, saves: lives(saves), cost: lives(cost), chance: (100 * chance).toFixed(1) };
}

function answered(dispatch) {
  const { advice, response } = dispatch;
  const values = { who: secondOf(dispatch), ...responseValues(response) };
  return t(`running.${advice}_${response.action}`, values);
}

function drawExpected(dispatch, now) {
  const rows = ["primary", "second"].map((role) => expected(dispatch, role, now)).filter(Boolean);
  const share = dispatch.second_first;
  if (dispatch.state === "running" && Number.isFinite(share)) {
    rows.push(["chance", t("running.is_first", { who: secondOf(dispatch) }), percent(share)]);
  }
  const box = byId("running-expected");
  if (box.children.length !== rows.length) {
    box.replaceChildren(...rows.map(() => element("div", {}, element("dt"), element("dd"))));
  }
  rows.forEach(([kind, name, value], i) => {
    box.children[i].className = kind;
    write(box.children[i].firstChild, name);
    write(box.children[i].lastChild, value);
  });
}

/** One of the two, and when it is expected: time runs on since the service said so. */
function expected({ state, updated_at: told, ...dispatch }, role, now) {
  const one = dispatch[role];
  if (!one || state === "ended" || (role === "second" && state === "stood_down")) return null;
  const who = one.unit ?? one.depot;
  if (one.status === "on_scene") return [role, who, t("unit.on_scene")];
  if (!Number.isFinite(one.expected_s)) return [role, who, "–"];
  const left = Date.parse(told) + 1000 * one.expected_s - now;
  return left > 0 ? [role, t("running.arrives", { who }), countdown(left)] : [role, who, t("running.now")];
}

/** Not more sure than the service: 0.997 is 99 %, 0.002 is 1 %; none at all is 0 %. */
function percent(share) {
  const whole = Math.min(99, Math.max(1, Math.round(100 * share)));
  return t("running.percent", { percent: share > 0 ? whole : 0 });
}

/** Tell a screen reader once what is asked, and what was done. */
function announce(dispatch) {
  const news = dispatch && (asks(dispatch) || dispatch.response);
  const text = news ? `${words(dispatch)} ${dispatch.response ? "" : because(dispatch)}`.trim() : "";
  if (text === said) return;
  said = text;
  byId("said-running").textContent = text;
}

// --- the reply --------------------------------------------------------------------

export const acceptChange = (dispatch, after) => send(dispatch, { action: "accept" }, after);

export function overrideChange(dispatch, after) {
  const words = `${t("banner.call", { call: dispatch.call_id })} · ${question(dispatch)}`;
  askReasons(words, byId("running-override"), (body) => send(dispatch, body, after));
}

async function send(dispatch, body, after) {
  pending = dispatch.advice_id;
  failed = null;
  after(null);
  try {
    const address = `v1/dispatches/${encodeURIComponent(dispatch.id)}/response`;
    after(await ask(address, "POST", { advice_id: dispatch.advice_id, ...body }));
  } catch (error) {
    failed = [dispatch.advice_id, error.message];
  } finally {
    pending = null;
    after(null);
  }
}
