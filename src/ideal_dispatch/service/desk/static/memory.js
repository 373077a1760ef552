// What this browser remembers between visits: language, theme, sound. Never advice, never a token.

export function recall(name) {
  try {
    return localStorage.getItem(`desk.${name}`);
  } catch {
    return null; // storage can be forbidden; the desk then forgets
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`desk.${name}`, value);
  } catch {
    // as above
  }
}
