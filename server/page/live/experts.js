// Every expert of the model: where it is, how hot, and what became of guesses. A row is a layer.

import { el } from "../dom.js";
import { number } from "../figures.js";
import { color, put, surface, swatch } from "./palette.js";

const where = 3, inHost = 1, reading = 2, inSlot = 3, guessed = 4, wasted = 8, picked = 16;
const places = ["on disk", "in the host's memory", "being read", "in a slot"];

/** Experts draws the cells that the feed keeps. */
export class Experts {
  #canvas = el("canvas", { role: "img" });
  #tip = el("div", { class: "tip", hidden: true });
  #counts = el("p", { class: "counts" });
  #begin = null;
  #experts = null;
  #glow = new Float32Array();
  element = el("section", { class: "panel", "aria-label": "Experts" });

  constructor() {
    this.#canvas.addEventListener("pointermove", (e) => this.#point(e));
    this.#canvas.addEventListener("pointerleave", () => { this.#tip.hidden = true; });
  }

  begin(begin) {
    this.#begin = begin;
    this.#glow = new Float32Array(begin.layers * begin.experts);
    const kinds = [["slot", "in a slot, the brighter the hotter"], ...(begin.resident ? [] : [["reading", "being read"], ["disk-cell", "on disk"], ["guessed", "guessed, not used yet"], ["wasted", "guessed in vain"]]), ["picked", "picked just now"]];
    this.element.hidden = begin.experts === 0;
    this.element.replaceChildren(
      el("header", null, el("h2", { text: "Experts" }), el("span", { class: "muted", text: `${begin.layers} layers × ${begin.experts}, ${begin.top_k} picked for each token` })),
      el("div", { class: "map" }, this.#canvas, this.#tip), this.#counts,
      el("ul", { class: "legend" }, kinds.map(([name, text]) => el("li", null, swatch(name), text))));
  }

  frame(frame, experts) {
    this.#experts = experts;
    for (let i = 0; i < this.#glow.length; i++) {
      this.#glow[i] = frame.experts && experts.cells[i] & picked ? 1 : this.#glow[i] * 0.6;
      experts.cells[i] &= ~picked; // it holds for one frame
    }
    if (frame.experts) this.#tell(frame.experts);
  }

  #tell(e) {
    const all = this.#begin.routed.filter(Boolean).length * this.#begin.experts, found = e.hits + e.late + e.misses;
    const parts = [`${number(e.in_slot)} of ${number(all)} in slots`];
    if (e.in_host) parts.push(`${number(e.in_host)} in the host's memory`);
    if (e.reading) parts.push(`${e.reading} being read`);
    if (found) parts.push(`of the last ${number(found)} uses ${number(e.hits)} found their expert, ${number(e.late)} came late, ${number(e.misses)} missed`);
    if (e.wasted) parts.push(`${number(e.wasted)} guesses wasted`);
    put(this.#counts, parts.join(" · "));
    this.#canvas.setAttribute("aria-label", `Map of the experts: ${parts.join(", ")}`);
  }

  /** draw draws the map. */
  draw() {
    const b = this.#begin, x = this.#experts;
    if (!b || !x || b.experts === 0) return;
    const pitch = this.#pitch();
    const { draw, width } = surface(this.#canvas, pitch * b.layers);
    const gap = Math.min(1, pitch / 6), w = width / b.experts;
    for (let layer = 0; layer < b.layers; layer++) {
      if (!b.routed[layer]) continue;
      for (let k = 0; k < b.experts; k++) this.#cell(draw, layer * b.experts + k, k * w, layer * pitch, Math.max(1, w - gap), pitch - gap);
    }
    draw.globalAlpha = 1;
  }

  #pitch() { return Math.max(4, Math.min(14, Math.floor(520 / this.#begin.layers))); }

  #cell(draw, i, x, y, w, h) {
    const cell = this.#experts.cells[i], heat = this.#experts.heat[i] / 255, place = cell & where;
    draw.globalAlpha = place === inSlot ? 0.28 + 0.72 * heat : place === inHost ? 0.6 : place === reading ? 1 : 0.35 + 0.65 * heat;
    draw.fillStyle = color(place === inSlot ? "slot" : place === reading ? "reading" : place === inHost ? "host" : "disk-cell");
    draw.fillRect(x, y, w, h);
    draw.globalAlpha = 1;
    if (cell & (guessed | wasted)) {
      draw.fillStyle = color(cell & guessed ? "guessed" : "wasted");
      const size = Math.max(2, Math.min(w, h) * 0.5);
      draw.fillRect(x + (w - size) / 2, y + (h - size) / 2, size, size);
    }
    if (this.#glow[i] > 0.1) {
      draw.globalAlpha = this.#glow[i];
      draw.fillStyle = color("picked");
      draw.fillRect(x, y + h - Math.max(1, h / 7), w, Math.max(1, h / 7));
      draw.globalAlpha = 1;
    }
  }

  #point(e) {
    const b = this.#begin, box = this.#canvas.getBoundingClientRect();
    const k = Math.floor((e.clientX - box.left) / box.width * b.experts), layer = Math.floor((e.clientY - box.top) / box.height * b.layers);
    const i = layer * b.experts + k, cell = this.#experts?.cells[i];
    this.#tip.hidden = cell === undefined || !b.routed[layer];
    if (this.#tip.hidden) return;
    const notes = [places[cell & where], `heat ${Math.round(this.#experts.heat[i] / 2.55)} %`];
    if (cell & guessed) notes.push("guessed");
    if (cell & wasted) notes.push("last guess wasted");
    put(this.#tip, `Layer ${layer}, expert ${k}: ${notes.join(", ")}`);
    this.#tip.style.left = `${Math.min(e.clientX - box.left + 12, box.width - 250)}px`;
    this.#tip.style.top = `${e.clientY - box.top + 16}px`;
  }
}
