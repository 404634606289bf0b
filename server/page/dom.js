// Elements are built here, from texts and never from markup: nothing that a model writes is parsed
// as HTML. The page's policy (trusted-types 'none') has the browser refuse it as well.

/**
 * el makes an element. Properties that begin with "on" are listeners, "data" is a set of data-*
 * attributes, null and false are left out, true is an attribute without a value.
 */
export function el(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) set(e, name, value);
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

function set(e, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
  else if (name === "data") Object.assign(e.dataset, value);
  else if (name === "class") e.className = value;
  else if (name === "text") e.textContent = value;
  else if (name === "value") e.value = value;
  else e.setAttribute(name, value === true ? "" : value);
}

/** by returns the element of an id. */
export const by = (id) => document.getElementById(id);

const paths = {
  plus: "M8 3v10M3 8h10",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  send: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  stop: "M4.5 4.5h7v7h-7z",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  check: "M3 8.5 6.5 12 13 4.5",
  edit: "M10.5 3 13 5.5 5.5 13H3v-2.5zM9 4.5 11.5 7",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  trash: "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9M6.7 7v4M9.3 7v4",
  left: "M9.5 4 5.5 8l4 4",
  right: "M6.5 4l4 4-4 4",
  down: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  sliders: "M2.5 5h5M11 5h2.5M2.5 11H5M8.5 11h5M7.5 3v4M11 3v4h-.01M5 9v4M8.5 9v4",
  close: "M4 4l8 8M12 4l-8 8",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  tool: "M9.8 6.2a3 3 0 0 0-4-3.7L7.5 4.2 6.3 6.3l-2.1-.1-1.6-1.6a3 3 0 0 0 3.6 4l5 5 1.6-1.6-5-5z",
  key: "M9.5 6.5 3 13v.5h2v-1.5h1.5v-1.5H8l1.3-1.3M11 2.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z",
};

/** icon draws one of the page's icons, which take the colour of the text around them. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", paths[name]);
  svg.append(path);
  return svg;
}

/** button makes a button with an icon, whose name is read out and shown as a tip. */
export function button(name, label, onclick, more) {
  return el("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...more }, icon(name));
}

/** copied puts a text on the clipboard and reports whether it got there. */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages that came without TLS from another machine have no clipboard of their own.
    const area = el("textarea", { value: text, class: "hidden-text", readonly: true });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** copyButton copies what text() returns, and says for a moment that it did. */
export function copyButton(label, text) {
  const b = button("copy", label, async () => {
    const done = await copied(text());
    b.replaceChildren(icon(done ? "check" : "close"));
    announce(done ? "Copied" : "Copying failed");
    setTimeout(() => b.replaceChildren(icon("copy")), 1500);
  });
  return b;
}

/** announce has screen readers say a text. */
export function announce(text) {
  by("said").append(el("div", { text }));
  while (by("said").childElementCount > 12) by("said").firstElementChild.remove();
}

/** toast shows a line at the foot of the page for a while, with a button to act on it. */
export function toast(text, action, act) {
  const t = el("div", { class: "toast" }, el("span", { text }));
  if (action) t.append(el("button", { type: "button", text: action, onclick: () => { act(); t.remove(); } }));
  by("toasts").replaceChildren(t);
  setTimeout(() => t.remove(), 8000);
}
