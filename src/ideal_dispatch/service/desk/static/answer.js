// The dispatcher's answer: accept, or override with a coded reason.

import { answerable, oldBecause } from "./advice.js";
import { byId, element, write } from "./elements.js";
import { clockTime } from "./format.js";
import { t } from "./language.js";
import { ask } from "./server.js";

const REASONS = ["unit_unavailable", "road_knowledge", "patient_condition", "capacity", "other"];

let pending = null; // the advice whose answer is on its way
let failed = null; // [advice's id, message] of the last answer that was not recorded

export function drawAnswer(advice, store, now) {
  const action = advice?.response?.action ?? "";
  const free = pending === null && !store.guarded;
  const usable = advice !== null && free && answerable(advice, store, now);
  byId("accept").disabled = !usable || action === "accept";
  byId("override").disabled = !usable;
  byId("answer").hidden = advice === null;
  byId("answer-buttons").hidden = advice?.decision === "no_advice" || !store.mayAnswer;
  byId("answer").dataset.action = action;
  write(byId("answer-words"), advice ? words(advice, store, now) : "");
}

function words(advice, store, now) {
  if (pending === advice.id) return t("answer.sending");
  if (failed?.[0] === advice.id) return t("answer.failed", { message: failed[1] });
  if (advice.response) return answered(advice.response);
  if (advice.decision === "no_advice") return t("answer.cannot_no_advice");
  const old = oldBecause(advice, store, now);
  return old ? t(`answer.cannot_${old}`) : "";
}

function answered(response) {
  const values = responseValues(response);
  return response.action === "accept" ? t("answer.accepted", values) : t("answer.overridden", values);
}

/** Who answered when, and why, as values for a sentence. */
export function responseValues({ by, at, reason_code: code, text }) {
  const reason = [code ? t(`override.${code}`) : "", text].filter(Boolean).join(": ");
  return { by: by ?? "", time: clockTime(at), reason };
}

/** Send an answer; `after` is called when the page should be drawn anew. */
async function send(advice, body, after) {
  pending = advice.id;
  failed = null;
  after();
  try {
    const address = `v1/recommendations/${encodeURIComponent(advice.id)}/response`;
    advice.response = (await ask(address, "POST", body)).response;
  } catch (error) {
    failed = [advice.id, error.message];
  } finally {
    pending = null;
    after();
  }
}

export const accept = (advice, after) => send(advice, { action: "accept" }, after);

// --- the override dialog -----------------------------------------------------------

export const dialogOpen = () => document.querySelector("dialog[open]") !== null;

let reasoned = null; // what takes the reason
let returnTo = null; // what had the focus

export function startOverride() {
  const dialog = byId("override-dialog");
  byId("override-cancel").addEventListener("click", () => dialog.close());
  byId("override-form").addEventListener("submit", (event) => {
    const choice = document.querySelector("input[name=reason]:checked");
    if (!choice) {
      event.preventDefault();
      return;
    }
    const text = byId("override-text").value.trim();
    const body = { action: "override", reason_code: choice.value };
    reasoned(text ? { ...body, text } : body);
  });
  dialog.addEventListener("close", () => returnTo.focus());
}

export function askOverride(advice, after) {
  const words = `${t("banner.call", { call: advice.call_id })} · ${t(`verdict.${advice.decision}`)}`;
  askReasons(words, byId("override"), (body) => send(advice, body, after));
}

/** Ask for the reason of an override of what `words` say, and hand it to `use`. */
export function askReasons(words, button, use) {
  reasoned = use;
  returnTo = button;
  byId("override-call").textContent = words;
  byId("override-text").value = "";
  byId("reasons").replaceChildren(
    ...REASONS.map((code, number) =>
      element(
        "label",
        { class: "reason" },
        element("input", { type: "radio", name: "reason", value: code, required: "required" }),
        element("kbd", {}, String(number + 1)),
        element("span", {}, t(`override.${code}`)),
      ),
    ),
  );
  byId("override-dialog").showModal();
  byId("reasons").querySelector("input").focus();
}

/** A digit chooses a reason while the dialog is open. */
export function chooseReason(digit) {
  const inputs = byId("reasons").querySelectorAll("input");
  const input = inputs[Number(digit) - 1];
  if (input) {
    input.checked = true;
    input.focus();
  }
}
