// The words of the page, in the language chosen.

import { recall, remember } from "./memory.js";
import { ask } from "./server.js";

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

let offered = ["en"];
let words = {};
let current = offered[0];

export const language = () => current;

/** Begin with the language last chosen here, else the browser's, else the first that is offered. */
export async function startLanguage() {
  offered = await ask("v1/languages").catch(() => offered);
  for (const button of document.querySelectorAll('[data-action="language"]')) {
    button.hidden = offered.length < 2;
  }
  const [asked] = navigator.language.split("-");
  const kept = recall("language");
  const wanted = offered.includes(kept) ? kept : offered.find((name) => name.split("-")[0] === asked);
  await useLanguage(wanted ?? offered[0]);
}

/** Change to the next language that is offered. */
export async function switchLanguage() {
  await useLanguage(offered[(offered.indexOf(current) + 1) % offered.length]);
  remember("language", current);
}

async function useLanguage(name) {
  const answer = await fetch(`locales/${name}.json`);
  if (!answer.ok) throw new Error(`locales/${name}.json: ${answer.status}`);
  words = await answer.json();
  current = name;
  document.documentElement.lang = name;
  document.title = t("title");
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
}

export const knows = (key) => Object.hasOwn(words, key);

/** The words for a key; {names} in them are replaced by values. */
export function t(key, values = {}) {
  const text = words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => isolated(String(values[name] ?? whole)));
}

/** Text inside a sentence: written from right to left, it must not turn the words around it. */
export const isolated = (text) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);
