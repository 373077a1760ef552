// Dark or light: the system's wish until somebody chooses here.

import { recall, remember } from "./memory.js";

const system = matchMedia("(prefers-color-scheme: dark)");

export const theme = () => recall("theme") ?? (system.matches ? "dark" : "light");

export function startTheme(changed) {
  const apply = () => {
    document.documentElement.dataset.theme = theme();
    changed();
  };
  system.addEventListener("change", apply);
  apply();
  return () => {
    remember("theme", theme() === "dark" ? "light" : "dark");
    apply();
  };
}
