// The running dispatch of the shown call: who is expected when, and whether to change it.

import { byId, element, write } from "./elements.js";
import { nameOf } from "./fleet.js";
import { chance, clockTime, countdown, lives } from "./format.js";
import { knows, language, t } from "./language.js";
import { refusedWords, replyWords } from "./reply.js";
import { ask } from "./server.js";

const LONG = 36; // characters of a question
let pending = null; // the dispatch whose reply is on its way
let refused = null; // [dispatch's id, error] of the last reply that was not recorded

/** Does it ask something that waits for a reply? */
export const asks = (dispatch) => Boolean(dispatch?.question) && dispatch.state !== "ended";

/** The question in a few words. */
export function question({ question: { advice, unit, depot }, second }) {
  const who = advice === "send_one" ? (unit ?? depot) : nameOf(second);
  return t(who ? `running.${advice}` : "running.send_any", { who });
}

/** Draw it; `keysFree` says that A and O have no other work. */
export function drawDispatch(dispatch, store, now, keysFree) {
  const box = byId("running");
  box.hidden = !dispatch;
  announce(dispatch);
  const asking = asks(dispatch);
  const usable = asking && store.online && pending === null && !store.guarded;
  for (const [id, keys] of [["running-do", "AD"], ["running-leave", "OL"]]) {
    byId(id).disabled = !usable;
    write(byId(id).querySelector("kbd"), keys[keysFree ? 0 : 1]);
  }
  byId("running-buttons").hidden = !asking || !store.mayAnswer;
  byId("recall").hidden = asking || dispatch?.state !== "running" || !store.mayAnswer || !store.online;
  if (!dispatch) return;
  box.dataset.asks = asking ? dispatch.question.advice : "";
  box.dataset.state = dispatch.state;
  box.toggleAttribute("data-long", words(dispatch).length > LONG);
  write(byId("running-words"), words(dispatch));
  write(byId("running-reason"), reason(dispatch));
  byId("running-reason").lang = translated(dispatch) ? language() : "en";
  if (asking) {
    const { advice } = dispatch.question;
    write(byId("running-do").querySelector("span"), t(`running.do_${advice}`));
    write(byId("running-leave").querySelector("span"), t(`running.leave_${advice}`));
  }
  write(byId("recall"), t("running.recall", { who: nameOf(dispatch.second) }));
  byId("recall").disabled = pending !== null || store.guarded;
  drawExpected(dispatch, now);
}

function words(dispatch) {
  if (asks(dispatch)) return question(dispatch);
  if (dispatch.state === "ended") return endedWords(dispatch);
  return t(`running.${dispatch.state}`, {
    who: nameOf(dispatch.second), time: clockTime(dispatch.started_at, false),
  });
}

/** When it ended, and who was first, where that was reported. */
export function endedWords(dispatch) {
  const codes = dispatch.reasons.map(({ code }) => code);
  const there = ["primary", "second"].filter((role) => dispatch[role].status === "on_scene");
  const role = codes.includes("first_arrived") ? "primary" : codes.includes("second_arrived") ? "second" : there[0];
  const time = clockTime(dispatch.ended_at ?? dispatch.as_of, false);
  return t(role ? "running.ended_first" : "running.ended", { time, who: role ? nameOf(dispatch[role]) : "" });
}

function reason(dispatch) {
  if (pending === dispatch.id) return t("reply.sending");
  if (refused?.[0] === dispatch.id) return t("reply.failed", { message: refusedWords(refused[1]) });
  const { reply } = dispatch;
  const done = reply && reply.action !== "accept" ? replyWords(reply) : [];
  return [...done, dispatch.state === "ended" ? "" : because(dispatch)].filter(Boolean).join(" · ");
}

const reasonsOf = (dispatch) => (asks(dispatch) ? dispatch.question : dispatch);

const translated = (dispatch) => reasonsOf(dispatch).reasons.every(({ code }) => knows(`because.${code}`));

/** Why it is advised: in our words where its codes are known, else as the service says it. */
function because(dispatch) {
  const { reason: text, reasons } = reasonsOf(dispatch);
  if (!translated(dispatch)) return text;
  return reasons.map(({ code, values }) => t(`because.${code}`, shown(values))).join(t("because.and"));
}

/** Numbers of reasons for people: lives of 10,000, a chance in percent. */
function shown({ saves, cost, chance: share, ...others }) {
  const known = {};
  if (Number.isFinite(saves)) known.saves = lives(saves);
  if (Number.isFinite(cost)) known.cost = lives(cost);
  if (Number.isFinite(share)) known.chance = chance(share);
  return { ...others, ...known };
}

function drawExpected(dispatch, now) {
  const rows = ["primary", "second"].map((role) => expected(dispatch, role, now)).filter(Boolean);
  const share = dispatch.second_first;
  const there = [dispatch.primary, dispatch.second].some(({ status }) => status === "on_scene");
  if (dispatch.state === "running" && !there && Number.isFinite(share)) {
    rows.push(["chance", t("running.is_first", { who: nameOf(dispatch.second) }), chance(share)]);
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

/** One of the two, and when it arrives: time runs on since the service said so. */
function expected(dispatch, role, now) {
  const { state, as_of: asOf, [role]: one } = dispatch;
  const gone = role === "second" && (state === "stood_down" || one.expected_s === null);
  if (state === "ended" || (gone && one.status !== "on_scene")) return null;
  const who = nameOf(one);
  if (one.status === "on_scene") return [role, who, t("unit.on_scene")];
  if (!Number.isFinite(one.expected_s)) return [role, who, "–"];
  const left = Date.parse(asOf) + 1000 * one.expected_s - now;
  return left > 0 ? [role, t("running.arrives", { who }), countdown(left)] : [role, who, t("arrival.now")];
}

/** Say once to a screen reader what is asked, and what was done. */
function announce(dispatch) {
  const text = asks(dispatch) || dispatch?.reply ? `${words(dispatch)} ${because(dispatch)}` : "";
  write(byId("said-running"), text);
}

// --- the reply --------------------------------------------------------------------

/** Do what is asked. */
export const doAsked = (dispatch, after) => send(dispatch, dispatch.question.advice, after);

/** Leave it as it is. */
export const leave = (dispatch, after) => send(dispatch, "keep", after);

/** Stand the second down although nothing is asked. */
export const recall = (dispatch, after) => send(dispatch, "stand_down", after);

async function send(dispatch, action, after) {
  pending = dispatch.id;
  refused = null;
  after(null);
  try {
    const id = encodeURIComponent(dispatch.id);
    const body = { action, ...(dispatch.question && { question: dispatch.question.id }) };
    await ask(`v1/recommendations/${id}/reply`, "POST", body);
    after(await ask(`v1/dispatches/${id}`));
  } catch (error) {
    refused = [dispatch.id, error];
  } finally {
    pending = null;
    after(null);
  }
}
