// The list of conversations.

import { button, by, el, toast } from "./dom.js";

const days = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

function day(at) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const ago = Math.ceil((midnight - at) / 86_400_000);
  if (ago <= 1) return days.format(-Math.max(0, ago), "day").replace(/^./, (c) => c.toUpperCase());
  return ago < 8 ? "This week" : "Earlier";
}

/** Sidebar lists the conversations of a store and shows the one that is picked in a chat. */
export class Sidebar {
  #store;
  #chat;
  #drawn = 0;

  constructor(store, chat) {
    this.#store = store;
    this.#chat = chat;
    by("new").addEventListener("click", () => { chat.show(null); this.close(); by("input").focus(); });
    by("menu").addEventListener("click", () => this.#open());
    by("scrim").addEventListener("click", () => this.close());
    by("close-menu").addEventListener("click", () => { this.close(); by("menu").focus(); });
    addEventListener("keydown", (e) => {
      if (e.key === "Escape" && document.body.classList.contains("menu-open")) {
        e.preventDefault();
        this.close();
        by("menu").focus();
      }
    });
  }

  #open() {
    document.body.classList.add("menu-open");
    by("menu").setAttribute("aria-expanded", "true");
    by("new").focus();
  }

  /** close hides the list where it lies over the chat. */
  close() {
    document.body.classList.remove("menu-open");
    by("menu").setAttribute("aria-expanded", "false");
  }

  async draw() {
    const turn = ++this.#drawn;
    const all = await this.#store.list();
    if (turn !== this.#drawn) return; // a later one is under way
    const out = [];
    let last = "";
    for (const c of all) {
      if (day(c.updated) !== last) out.push(el("li", { class: "day", text: (last = day(c.updated)) }));
      out.push(this.#entry(c));
    }
    by("conversations").replaceChildren(...out);
  }

  #entry(c) {
    const shown = c.id === this.#chat.current.id;
    return el("li", { class: shown ? "entry shown" : "entry" },
      el("button", {
        type: "button", class: "title", text: c.title || "Untitled", title: c.title, "aria-current": shown && "true",
        onclick: () => { this.#show(c.id); this.close(); by("input").focus(); },
      }),
      this.#chat.running(c.id) ? el("span", { class: "dots", role: "img", "aria-label": "Answering" }) : button("trash", `Delete ${c.title || "chat"}`, () => this.#delete(c)));
  }

  async #show(id) {
    if (id === this.#chat.current.id) return;
    this.#chat.show(this.#chat.underWay(id) ?? (await this.#store.list()).find((c) => c.id === id));
  }

  async #delete(c) {
    await this.#store.remove(c.id);
    if (c.id === this.#chat.current.id) this.#chat.show(null);
    else this.draw();
    by("new").focus();
    toast("The chat is deleted.", "Undo", async () => {
      await this.#store.put(c);
      this.draw();
    });
  }
}
