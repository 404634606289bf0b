// The live view: what the engine does at this moment. It listens only while somebody can see it.

import { by, el } from "../dom.js";
import { bytes, number } from "../figures.js";
import { Experts } from "./experts.js";
import { Feed } from "./feed.js";
import { onTheme, percent, put } from "./palette.js";
import { Pipeline } from "./pipeline.js";
import { Requests } from "./requests.js";
import { Tokens } from "./tokens.js";

const tileNames = ["Tokens", "Rows", "From disk", "Experts found", "Requests"];

/** Live fills #live. model() names the model that is looked at; "" is the only one. */
export class Live {
  #parts = [new Pipeline(), new Requests(), new Experts(), new Tokens()];
  #tiles = new Map(tileNames.map((name) => [name, el("b", { text: "–" })]));
  #about = el("p", { class: "muted about" });
  #trouble = el("p", { class: "error", role: "status", hidden: true });
  #board = el("div", { id: "board", hidden: true });
  #feed;
  #model;
  #shown = false;
  #drawing = 0;

  constructor(model) {
    this.#model = model;
    this.#feed = new Feed({ begin: (b) => this.#begin(b), frame: (f, e) => this.#frame(f, e), trouble: (text) => this.#say(text) });
    const tiles = el("dl", { class: "tiles" }, [...this.#tiles].map(([name, value]) => el("div", null, el("dt", { text: name }), el("dd", null, value))));
    this.#board.append(tiles, ...this.#parts.map((p) => p.element));
    by("live").append(el("div", { class: "live-head" }, el("h1", { text: "What the engine does" }), this.#about), this.#trouble, this.#board);
    document.addEventListener("visibilitychange", () => this.#listen());
    addEventListener("resize", () => this.#draw());
    onTheme(() => this.#draw());
  }

  /** show begins to listen, or ends it. */
  show(shown) {
    this.#shown = shown;
    this.#listen();
  }

  /** again listens to the model that is chosen now. */
  again() { this.#listen(); }

  #listen() {
    if (this.#shown && !document.hidden) this.#feed.start(this.#model());
    else this.#feed.stop();
  }

  #say(text) {
    this.#trouble.hidden = text === "";
    put(this.#trouble, text);
    if (text) this.#board.classList.add("old");
    else this.#board.classList.remove("old");
  }

  #begin(b) {
    this.#board.hidden = false;
    put(this.#about, `${b.model} on ${b.device}. ${b.resident ? "All experts are in memory." : `Experts of ${bytes(b.expert_size)} come from disk as they are picked.`}`);
    for (const p of this.#parts) p.begin(b);
  }

  #frame(frame, experts) {
    const p = frame.pipeline, e = frame.experts, tile = (name, text) => put(this.#tiles.get(name), text);
    tile("Tokens", `${p.tokens_per_s < 100 ? p.tokens_per_s.toFixed(1) : number(Math.round(p.tokens_per_s))}/s`);
    tile("Rows", `${number(Math.round(p.rows_per_s))}/s`);
    tile("From disk", `${bytes(p.bytes_per_s)}/s`);
    const found = e && e.hits + e.late + e.misses;
    if (found) tile("Experts found", percent(e.hits / found));
    const n = (frame.requests?.length ?? 0) + (frame.more ?? 0);
    tile("Requests", `${n}${p.waiting > 0 ? `, ${p.waiting} wait` : ""}`);
    for (const part of this.#parts) part.frame(frame, experts);
    this.#draw();
  }

  #draw() {
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      for (const p of this.#parts) p.draw?.();
    });
  }
}
