// Buttons and keys, each leading to one of the desk's actions.

import { dialogOpen } from "./reply.js";

const LETTERS = {
  a: "key_accept",
  o: "key_override",
  d: "do_asked",
  l: "leave_asked",
  c: "close_road",
  u: "units",
  j: "older",
  k: "newer",
  n: "newest",
  f: "follow",
  s: "sound",
  t: "theme",
  "?": "keys",
};
const ARROWS = { ArrowDown: "older", ArrowUp: "newer" };
const WRITES = "input:not([type=checkbox], [type=radio], [type=range]), textarea";
const SCROLLS = ".map, .scroll, .what-if, input:not([type=checkbox])";

export function startKeys(actions) {
  for (const button of document.querySelectorAll("[data-action]")) {
    button.addEventListener("click", () => {
      actions[button.dataset.action]();
    });
  }
  document.addEventListener("keydown", (event) => {
    const action = actionOf(event);
    if (!action) return;
    event.preventDefault();
    actions[action[0]](action[1]);
  });
}

function actionOf(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (document.querySelector("#desk[hidden]") || event.target.matches(WRITES)) return null;
  if (dialogOpen()) return /^[1-9]$/.test(event.key) ? ["reason", event.key] : null;
  if (ARROWS[event.key]) {
    return event.target.closest(SCROLLS) ? null : [ARROWS[event.key]];
  }
  const action = LETTERS[letter(event)];
  const held = event.repeat && action !== "older" && action !== "newer";
  return action && !held ? [action] : null;
}

/** The letter, also where an input method for Chinese is at work and hides it. */
function letter({ key, code }) {
  return /^[a-z?]$/i.test(key) ? key.toLowerCase() : code.replace(/^Key/, "").toLowerCase();
}
