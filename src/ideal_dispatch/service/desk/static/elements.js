// Elements by hand. Text enters the page as text nodes only, so that nothing a caller,
// a CAD or a colleague wrote can become markup.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

export function shape(decision) {
  const use = svg("use", { href: `#shape-${decision}` });
  return svg("svg", { class: "shape", "aria-hidden": "true" }, use);
}

/** Write text where it differs, so that a screen reader does not say the same twice. */
export function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
