// The settings of a conversation, and the key: two dialogs.

import { key } from "./api.js";
import { by, el } from "./dom.js";
import { settings } from "./store.js";

const fields = [
  ["temperature", "Temperature", "How freely tokens are drawn; 0 always takes the likeliest.", { min: 0, max: 2, step: "any" }],
  ["top_p", "Top p", "Only the likeliest tokens that make up this share.", { min: 0, max: 1, step: "any" }],
  ["top_k", "Top k", "Only this many of the likeliest tokens; 0 is all.", { min: 0, step: 1 }],
  ["min_p", "Min p", "Only tokens at least this likely, against the likeliest.", { min: 0, max: 1, step: "any" }],
  ["repeat_penalty", "Repeat penalty", "Above 1, what was said is said less.", { min: 0.01, max: 100, step: "any" }],
  ["presence_penalty", "Presence penalty", "Above 0, new words are favoured.", { min: -2, max: 2, step: "any" }],
  ["frequency_penalty", "Frequency penalty", "Above 0, frequent words are avoided.", { min: -2, max: 2, step: "any" }],
  ["max_tokens", "Most tokens", "Where an answer is cut.", { min: 1, step: 1 }],
  ["seed", "Seed", "The same seed draws the same answer.", { step: 1 }],
];

/** defaults returns what new chats begin with: the settings that were saved last. */
export const defaults = () => settings.get("defaults", {});

/** preferences connects the dialog of settings to a chat. changed is called after. */
export function preferences(chat, changed) {
  const dialog = by("settings"), form = dialog.querySelector("form");
  by("numbers").replaceChildren(...fields.map(([name, label, help, bounds]) => el("label", { class: "field" },
    el("span", { text: label }),
    el("input", { type: "number", name, placeholder: "default", inputmode: "decimal", "aria-describedby": `help-${name}`, ...bounds }),
    el("small", { id: `help-${name}`, text: help }))));
  by("open-settings").addEventListener("click", () => {
    for (const e of form.elements) if (e.name) e.value = chat.current.settings[e.name] ?? "";
    validate(form);
    dialog.showModal();
  });
  form.elements.tools.addEventListener("input", () => validate(form));
  form.addEventListener("submit", () => {
    const s = {};
    for (const e of form.elements) if (e.name && e.value.trim() !== "") s[e.name] = e.value;
    s.model = chat.current.settings.model;
    chat.current.settings = s;
    settings.set("defaults", s);
    chat.keep();
    changed();
  });
  by("reset").addEventListener("click", () => {
    for (const e of form.elements) if (e.name) e.value = "";
    validate(form);
  });
  by("cancel-settings").addEventListener("click", () => dialog.close());
}

// validate says what is wrong with the tools, before the server would.
function validate(form) {
  const e = form.elements.tools;
  let wrong = "";
  if (e.value.trim()) {
    try {
      const list = JSON.parse(e.value);
      if (!Array.isArray(list) || !list.every((t) => t.type === "function" && t.function?.name)) wrong = 'The tools must be a list of {"type": "function", "function": {"name": …}}.';
    } catch (err) {
      wrong = `This is not JSON: ${err.message}`;
    }
  }
  e.setCustomValidity(wrong);
  by("tools-error").textContent = wrong;
}

/** picker shows which models there are, and has one of them answer. */
export function picker(chat, models) {
  const select = by("model"), only = by("only-model");
  const names = models.map((m) => m.id);
  select.hidden = names.length < 2;
  only.hidden = names.length !== 1;
  only.textContent = names[0] ?? "";
  select.replaceChildren(...names.map((name) => el("option", { value: name, text: name })));
  const wanted = chat.current.settings.model;
  select.value = names.includes(wanted) ? wanted : names[0] ?? "";
  if (names.length > 1) chat.current.settings.model = select.value;
  else delete chat.current.settings.model;
  select.onchange = () => {
    chat.current.settings.model = select.value;
    settings.set("defaults", { ...defaults(), model: select.value });
    chat.keep();
  };
}

/** askKey asks for the key, and calls then when there is one. */
export function askKey(then) {
  const dialog = by("key-dialog"), input = by("key-input");
  if (dialog.open) return;
  input.value = key.get();
  by("key-title").textContent = key.get() ? "The server does not know this key" : "The server wants a key";
  dialog.querySelector("form").onsubmit = () => {
    key.set(input.value.trim());
    then();
  };
  by("cancel-key").onclick = () => dialog.close();
  dialog.showModal();
  input.select();
}
