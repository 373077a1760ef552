// The list of recent calls, newest first. Rows stay the same elements while they are listed:
// a click or the focus must not be lost because another call came in between.

import { standing } from "./advice.js";
import { asks, question } from "./dispatch.js";
import { byId, element, shape, write } from "./elements.js";
import { clockTime } from "./format.js";
import { t } from "./language.js";

const OLD = ["expired", "superseded", "offline", "ended"];

const rows = new Map(); // by the advice's id

export function drawCalls(store, unseen, now, choose) {
  const box = byId("calls");
  const list = store.list;
  for (const [place, advice] of list.entries()) {
    if (!rows.has(advice.id)) rows.set(advice.id, row(advice, choose));
    const item = rows.get(advice.id);
    update(item.firstChild, advice, store, unseen.has(advice.id), now);
    if (box.children[place] !== item) box.insertBefore(item, box.children[place] ?? null);
  }
  for (const [id, item] of rows) {
    if (store.advices.has(id)) continue;
    item.remove();
    rows.delete(id);
  }
  byId("no-calls").hidden = list.length > 0;
}

/** Bring the call that is shown into sight, and the focus to it where it was in the list. */
export function followSelection() {
  const box = byId("calls");
  const current = box.querySelector("[aria-current]");
  current?.scrollIntoView({ block: "nearest" });
  if (box.contains(document.activeElement)) current?.focus();
}

function row(advice, choose) {
  const button = element(
    "button",
    { type: "button", class: "call-row", "data-id": advice.id, "data-decision": advice.decision },
    shape(advice.decision),
    ...["short", "time", "id", "state"].map((part) => element("span", { class: part })),
  );
  button.addEventListener("click", () => choose(advice.id));
  return element("li", {}, button);
}

function update(button, advice, store, isNew, now) {
  const [, short, time, name, state] = button.children;
  const is = standing(advice, store, now);
  const dispatch = store.dispatches.get(advice.id);
  const lost = is === "lost" || (is !== "superseded" && store.losses.has(advice.id));
  const asking = store.online && asks(dispatch);
  const words = lost ? t("short.lost") : t(`short.${advice.decision}`);
  write(short, asking ? question(dispatch) : words);
  write(time, clockTime(advice.received_at, false));
  write(name, advice.revision > 1 ? `${advice.call_id} ${t("calls.revision", advice)}` : advice.call_id);
  write(state, is === "open" || is === "lost" ? "" : t(`state.${is}`));
  button.dataset.standing = asking || lost ? "asks" : OLD.includes(is) ? "old" : is;
  button.toggleAttribute("data-new", isNew);
  const shown = advice.id === store.selected;
  button.tabIndex = shown ? 0 : -1; // one stop for Tab; J, K and arrows go through the list
  if (shown) button.setAttribute("aria-current", "true");
  else button.removeAttribute("aria-current");
}
