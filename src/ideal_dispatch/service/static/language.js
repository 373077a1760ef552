// The words of the page, in the language chosen.

import { recall, remember } from "./memory.js";

const LANGUAGES = ["en", "zh-Hant"];

let words = {};
let current = LANGUAGES[0];

export const language = () => current;
export const otherLanguage = () => LANGUAGES[(LANGUAGES.indexOf(current) + 1) % LANGUAGES.length];

/** The language last chosen here, else the browser's, else English. */
export function firstLanguage() {
  const kept = recall("language");
  if (LANGUAGES.includes(kept)) return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh-Hant" : "en";
}

export async function useLanguage(name) {
  const answer = await fetch(`locales/${name}.json`);
  if (!answer.ok) throw new Error(`locales/${name}.json: ${answer.status}`);
  words = await answer.json();
  current = name;
  remember("language", name);
  document.documentElement.lang = name;
  document.title = t("title");
  for (const node of document.querySelectorAll("[data-t]")) node.textContent = t(node.dataset.t);
}

export const knows = (key) => Object.hasOwn(words, key);

/** The words for a key; {names} in them are replaced by values. */
export function t(key, values = {}) {
  const text = words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
}
