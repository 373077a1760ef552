// The dispatcher's reply to an advice: accept, or override with a coded reason.

import { open, standing, verdictWords } from "./advice.js";
import { byId, element, write } from "./elements.js";
import { clockTime } from "./format.js";
import { knows, t } from "./language.js";
import { ask } from "./server.js";

const REASONS = ["unit_unavailable", "road_knowledge", "patient_condition", "capacity", "other"];

let pending = null; // the advice whose reply is on its way
let refused = null; // [advice's id, error] of the last reply that was not recorded

export function drawReply(advice, store, now) {
  const waits = advice !== null && open(advice, store, now);
  const usable = waits && pending === null && !store.guarded;
  byId("accept").disabled = !usable;
  byId("override").disabled = !usable;
  byId("reply-buttons").hidden = !waits || !store.mayAnswer;
  const words = advice ? adviceWords(advice, store, now) : "";
  write(byId("reply-words"), words);
  byId("reply").hidden = !words && byId("reply-buttons").hidden;
}

function adviceWords(advice, store, now) {
  if (pending === advice.id) return t("reply.sending");
  if (refused?.[0] === advice.id) return t("reply.failed", { message: refusedWords(refused[1]) });
  const is = standing(advice, store, now);
  return advice.decision !== "no_advice" && knows(`reply.cannot_${is}`) ? t(`reply.cannot_${is}`) : "";
}

/** Why the service did not take a reply: in our words where its code is known. */
export const refusedWords = ({ code, message }) => (knows(`refused.${code}`) ? t(`refused.${code}`) : message);

/** Who replied what and when, and why, in two parts. */
export function replyWords({ action, by, at, reason_code: code, text }) {
  const reason = [code ? t(`override.${code}`) : "", text].filter(Boolean).join(": ");
  return [t(`reply.${action}`, { by, time: clockTime(at) }), reason];
}

/** Send a reply; `after` is called when the page should be drawn anew. */
async function send(advice, body, store, after) {
  pending = advice.id;
  refused = null;
  after();
  try {
    store.put(await ask(`v1/recommendations/${encodeURIComponent(advice.id)}/reply`, "POST", body));
  } catch (error) {
    refused = [advice.id, error];
    if (error.reply) { // another desk was first
      const state = error.reply.action === "accept" ? "accepted" : "overridden";
      store.put({ ...advice, reply: error.reply, state });
    }
  } finally {
    pending = null;
    after();
  }
}

export const accept = (advice, store, after) => send(advice, { action: "accept" }, store, after);

// --- the override dialog -----------------------------------------------------------

export const dialogOpen = () => document.querySelector("dialog[open]") !== null;

let reasoned = null; // what takes the reason

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
    reasoned({ action: "override", reason_code: choice.value, ...(text && { text }) });
  });
  dialog.addEventListener("close", () => byId("override").focus());
}

/** Ask for the reason of an override, and send it. */
export function askOverride(advice, store, after) {
  reasoned = (body) => send(advice, body, store, after);
  const call = t("banner.call", { call: advice.call_id });
  byId("override-call").textContent = `${call} · ${verdictWords(advice)}`;
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
  const input = byId("reasons").querySelectorAll("input")[Number(digit) - 1];
  if (!input) return;
  input.checked = true;
  input.focus();
}
