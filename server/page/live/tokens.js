// Tokens: how long each took and why, and of one of them all that was done for it.

import { el } from "../dom.js";
import { number } from "../figures.js";
import { legend } from "./pipeline.js";
import { color, percent, put, surface, swatch, time } from "./palette.js";

const kept = 160, stripHeight = 84, pathHeight = 14;

/** Tokens draws the tokens of frames. */
export class Tokens {
  #strip = el("canvas", { tabindex: "0", role: "slider", "aria-label": "Token", "aria-valuemin": "0" });
  #fall = el("canvas", { role: "img" });
  #title = el("p", { class: "counts", role: "status" });
  #causes = el("ul", { class: "causes" });
  #latest = el("button", { type: "button", text: "Follow the latest", hidden: true, onclick: () => this.#choose(null) });
  #tokens = [];
  #chosen = null; // null: the latest
  #begin = null;
  #shown = null;
  element = el("section", { class: "panel", "aria-label": "Tokens" });

  constructor() {
    this.#strip.addEventListener("click", (e) => {
      const box = this.#strip.getBoundingClientRect();
      this.#choose(this.#tokens[this.#first() + Math.floor((e.clientX - box.left) / this.#pitch())] ?? null);
    });
    this.#strip.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -kept, End: kept }[e.key];
      if (!by) return;
      e.preventDefault();
      const at = this.#tokens.indexOf(this.#token()) + by;
      this.#choose(this.#tokens[Math.max(0, Math.min(this.#tokens.length - 1, at))] ?? null);
    });
  }

  begin(begin) {
    this.#begin = begin;
    this.#tokens = [];
    this.#chosen = this.#shown = null;
    this.element.replaceChildren(
      el("header", null, el("h2", { text: "Tokens" }), el("span", { class: "muted", text: "each column is one, by what its time went into" }), this.#latest),
      el("div", { class: "map" }, this.#strip), this.#title,
      el("div", { class: "token" }, el("div", { class: "map" }, this.#fall), this.#causes),
      legend(begin.works.filter((w) => w !== "nothing")));
    this.#causes.replaceChildren();
    this.element.classList.add("none");
    put(this.#title, "No token has been answered yet.");
  }

  frame(frame) {
    if (!frame.tokens?.length) return;
    this.element.classList.remove("none");
    this.#tokens.push(...frame.tokens);
    this.#tokens.splice(0, this.#tokens.length - kept);
    if (this.#chosen && !this.#tokens.includes(this.#chosen)) this.#choose(null);
  }

  draw() {
    if (this.#tokens.length === 0) return;
    this.#drawStrip();
    const t = this.#token();
    if (t !== this.#shown) {
      this.#shown = t;
      this.#tell(t);
    }
    this.#drawFall(t);
  }

  #token() { return this.#chosen ?? this.#tokens.at(-1); }

  #choose(token) {
    this.#chosen = token;
    this.#latest.hidden = token === null;
    this.draw();
  }

  // How far apart columns are, and which token has the first one.
  #pitch() { return Math.max(4, this.#strip.parentElement.clientWidth / kept); }
  #first() { return Math.max(0, this.#tokens.length - Math.floor(this.#strip.parentElement.clientWidth / this.#pitch())); }

  #drawStrip() {
    const { draw } = surface(this.#strip, stripHeight), pitch = this.#pitch();
    const shown = this.#tokens.slice(this.#first());
    // A prompt takes many times as long as a token: the scale is that of most.
    const walls = shown.map((t) => t.wall_us).sort((a, b) => a - b);
    const top = Math.max(1, walls[Math.floor((walls.length - 1) * 0.95)] * 1.15);
    shown.forEach((t, i) => {
      let y = stripHeight;
      for (const c of t.causes) {
        const h = Math.min(y, c.share * t.wall_us / top * (stripHeight - 4));
        draw.fillStyle = color(this.#begin.causes[c.cause].name);
        draw.fillRect(i * pitch, y - h, pitch - 1, h);
        y -= h;
      }
      if (t === this.#token()) {
        draw.fillStyle = color("picked");
        draw.fillRect(i * pitch, 0, pitch - 1, 2);
      }
    });
  }

  #tell(t) {
    const what = t.rows > 1 ? `A prompt of ${number(t.rows)} tokens` : `Token ${number(t.position)}`;
    const whose = t.id ? ` of ${t.id}` : "";
    put(this.#title, `${what}${whose}: ${time(t.wall_us)}`);
    this.#strip.setAttribute("aria-valuemax", String(this.#tokens.length - 1));
    this.#strip.setAttribute("aria-valuenow", String(this.#tokens.indexOf(t)));
    const most = this.#begin.causes[t.causes[0]?.cause];
    this.#strip.setAttribute("aria-valuetext", `${what}, ${time(t.wall_us)}, mostly because ${most?.words}`);
    this.#fall.setAttribute("aria-label", `What was done for it, layer by layer; ${this.#begin.layers} layers`);
    this.#causes.replaceChildren(...t.causes.filter((c) => c.share > 0.0005).map((c) => {
      const { name, words } = this.#begin.causes[c.cause];
      return el("li", null, swatch(name), el("b", { text: percent(c.share) }), el("span", null, el("span", { text: words }), el("small", { text: ` ${time(c.share * t.wall_us)}` })));
    }));
  }

  #drawFall(t) {
    const rows = this.#begin.layers + 1, pitch = Math.max(3, Math.min(12, Math.floor(420 / rows)));
    const { draw, width } = surface(this.#fall, pathHeight + 8 + rows * pitch);
    const x = (us) => us / t.wall_us * width, top = pathHeight + 8;
    draw.fillStyle = color("row");
    for (let r = 0; r < rows; r += 2) draw.fillRect(0, top + r * pitch, width, pitch);
    for (let i = 0; i < t.bars.length; i += 4) {
      const [layer, from, to, work] = t.bars.slice(i, i + 4);
      draw.fillStyle = color(this.#begin.works[work]);
      draw.fillRect(x(from), top + layer * pitch + 0.5, Math.max(1, x(to) - x(from)), pitch - 1);
    }
    for (let i = 0; i < t.path.length; i += 4) {
      const [from, to, cause, layer] = t.path.slice(i, i + 4);
      draw.fillStyle = color(this.#begin.causes[cause].name);
      draw.fillRect(x(from), 0, Math.max(0.5, x(to) - x(from)), pathHeight);
      if (layer < 0) continue;
      draw.fillStyle = color("path");
      draw.fillRect(x(from), top + layer * pitch + pitch - Math.max(1.5, pitch / 4), Math.max(1, x(to) - x(from)), Math.max(1.5, pitch / 4));
    }
  }
}
