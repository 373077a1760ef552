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
  byId("answer-buttons").hidden = advice?.decision === "no_advice";
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

function answered({ action, by, at, reason_code: code, text }) {
  const values = { by: by ?? "", time: clockTime(at) };
  if (action === "accept") return t("answer.accepted", values);
  const reason = [code ? t(`override.${code}`) : "", text].filter(Boolean).join(": ");
  return t("answer.overridden", { ...values, reason });
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

let overridden = null;

export function startOverride(after) {
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
    send(overridden, text ? { ...body, text } : body, after);
  });
  dialog.addEventListener("close", () => byId("override").focus());
}

export function askOverride(advice) {
  overridden = advice;
  byId("override-call").textContent =
    `${t("banner.call", { call: advice.call_id })} · ${t(`verdict.${advice.decision}`)}`;
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
