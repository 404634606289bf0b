// The page's beginning: it puts the parts together.

import { models } from "./api.js";
import { Chat } from "./chat.js";
import { composer } from "./composer.js";
import { by, toast } from "./dom.js";
import { Live } from "./live/live.js";
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
const live = new Live(() => (served.length > 1 ? by("model").value : ""));
by("model").addEventListener("change", () => live.again());
addEventListener("hashchange", view);
chat.show((await store.list()).find((c) => c.id === settings.get("shown", "")) ?? null);
if (!store.lasting) toast("This browser keeps nothing for this page: chats last until it is closed.");
connect();
view();

// view shows the chat, or what the engine does.
function view() {
  const watching = location.hash === "#live";
  by("chat").hidden = watching;
  by("live").hidden = !watching;
  for (const [id, current] of [["to-chat", !watching], ["to-live", watching]]) {
    if (current) by(id).setAttribute("aria-current", "page");
    else by(id).removeAttribute("aria-current");
  }
  live.show(watching);
  if (watching) by("live").focus();
  else form.focus();
}

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
