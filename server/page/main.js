// The page's beginning: it puts the parts together.

import { models } from "./api.js";
import { Chat } from "./chat.js";
import { composer } from "./composer.js";
import { by, toast } from "./dom.js";
import { askKey, defaults, picker, preferences } from "./preferences.js";
import { Sidebar } from "./sidebar.js";
import { settings, Store } from "./store.js";

const store = await new Store().open();
let served = [], form = null, sidebar = null;
const chat = new Chat(store, {
  changed: () => {
    form?.draw();
    sidebar?.draw();
    if (served.length > 0) picker(chat, served);
    settings.set("shown", chat.current.id);
  },
  key: () => askKey(connect),
  defaults,
});
form = composer(chat);
sidebar = new Sidebar(store, chat);
preferences(chat, () => form.draw());
theme();
chat.show((await store.list()).find((c) => c.id === settings.get("shown", "")) ?? null);
if (!store.lasting) toast("This browser keeps nothing for this page: chats last until it is closed.");
connect();
form.focus();

// connect asks what is served, again and again while nobody answers.
async function connect() {
  const state = by("connection");
  try {
    served = await models();
    picker(chat, served);
    state.hidden = true;
  } catch (err) {
    state.hidden = false;
    state.textContent = err.status === 401 ? "The server wants a key." : err.message;
    if (err.status === 401) askKey(connect);
    else setTimeout(connect, 3000);
  }
}

function theme() {
  const root = document.documentElement;
  by("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    settings.set("theme", root.dataset.theme);
  });
}
