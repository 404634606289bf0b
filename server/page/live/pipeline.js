// The pipeline: what the stages, the device and the disk do, and why they do not.

import { el } from "../dom.js";
import { bytes, number } from "../figures.js";
import { percent, put, swatch, time } from "./palette.js";

// In the order of a layer's way, and what each does for it.
const roles = {
  sequencer: "begins layers", dispatch: "submits work", router: "plans, and guesses", "expert-io": "brings experts", combine: "retires layers",
};
const order = Object.keys(roles);
const stepsShown = 3;

/** Pipeline draws Frame.Pipeline. */
export class Pipeline {
  element = el("section", { class: "panel", "aria-label": "Pipeline" }, el("h2", { text: "Pipeline" }));
  #begin;
  #stages = [];
  #device = lane("Device", "device");
  #disk = lane("Disk", "disk");
  #ring = gauge("Ring", "waves submitted and not retired");
  #reads = gauge("Reads", "under way, and waiting for a worker");
  #slots = gauge("Slots", "that hold experts");
  #steps = el("ol", { class: "steps", "aria-label": "Steps under way" });

  begin(begin) {
    this.#begin = begin;
    this.#stages = begin.stages.map(box);
    const sorted = [...this.#stages].sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
    const flow = sorted.flatMap((s, i) => (i ? [el("span", { class: "arrow", "aria-hidden": "true" }), s.element] : [s.element]));
    this.#steps.replaceChildren(...Array.from({ length: stepsShown }, step));
    this.element.replaceChildren(el("h2", { text: "Pipeline" }), el("div", { class: "flow" }, flow),
      this.#device.element, this.#disk.element, legend(begin.causes.map((c) => c.name)),
      el("div", { class: "gauges" }, this.#ring.element, this.#reads.element, this.#slots.element), this.#steps);
    this.#disk.element.hidden = this.#reads.element.hidden = this.#slots.element.hidden = begin.resident;
  }

  frame({ pipeline: p }) {
    const b = this.#begin;
    this.#stages.forEach((s, i) => s.show(p.stages[i]));
    this.#device.show(p.device, b.causes, "");
    this.#disk.show(p.disk, b.causes, p.bytes_per_s > 0 ? `, ${bytes(p.bytes_per_s)}/s` : "");
    this.#ring.dots(p.ring, Math.max(b.ring_depth, p.ring), `${p.ring} of ${b.ring_depth}`);
    this.#reads.dots(p.reads_running, Math.max(b.read_workers, p.reads_running), `${p.reads_running} of ${b.read_workers}${p.reads_queued > 0 ? `, ${p.reads_queued} wait` : ""}`);
    this.#slots.bar(p.slots ? p.slots_used / p.slots : 0, p.slots ? `${number(p.slots_used)} of ${number(p.slots)}` : "no step yet");
    [...this.#steps.children].forEach((row, i) => showStep(row, p.steps?.[i], b));
    if (!p.steps?.length) put(this.#steps.firstChild.lastChild, "No step is under way at this moment.");
  }
}

function box(name) {
  const fill = el("i"), busy = el("b"), rate = el("span"), wait = el("span");
  return {
    name,
    element: el("div", { class: "stage" }, el("h3", { text: name }), el("p", { class: "role", text: roles[name] ?? "" }), el("div", { class: "meter", "aria-hidden": "true" }, fill), el("p", null, busy, " busy"), el("p", null, rate), el("p", null, wait)),
    show(s) {
      fill.style.width = `${Math.min(100, s.busy * 100)}%`;
      put(busy, percent(s.busy));
      put(rate, `${number(Math.round(s.per_s))} messages/s`);
      put(wait, s.per_s > 0 ? `${s.mailbox_us < 1 ? "< 1 µs" : time(s.mailbox_us)} in the mailbox` : "");
    },
  };
}

// lane is a time divided into work and causes of idleness.
function lane(name, work) {
  const bar = el("div", { class: "lane-bar", "aria-hidden": "true" }), said = el("span", { class: "lane-text" });
  return {
    element: el("div", { class: "lane" }, el("h3", { text: name }), bar, said),
    show({ busy, idle = [] }, causes, more) {
      const parts = [[work, busy], ...idle.map((s) => [causes[s.cause].name, s.share])];
      while (bar.children.length > parts.length) bar.lastChild.remove();
      while (bar.children.length < parts.length) bar.append(el("i"));
      parts.forEach(([kind, share], i) => {
        bar.children[i].style.flexGrow = String(Math.max(0, share));
        bar.children[i].style.background = `var(--k-${kind})`;
        bar.children[i].title = `${i ? kind.replaceAll("_", " ") : "busy"}: ${percent(share)}`;
      });
      const most = idle[0] && causes[idle[0].cause];
      put(said, `${percent(busy)} busy${more}${most && busy < 0.995 ? `. Idle mostly because ${most.words}` : ""}`);
    },
  };
}

function gauge(name, title) {
  const shape = el("div", { class: "dots-row", "aria-hidden": "true" }), said = el("span");
  return {
    element: el("div", { class: "gauge", title }, el("h3", { text: name }), shape, said),
    dots(n, of, text) {
      const shown = Math.min(of, 32);
      while (shape.children.length > shown) shape.lastChild.remove();
      while (shape.children.length < shown) shape.append(el("i"));
      [...shape.children].forEach((d, i) => d.classList.toggle("on", i < n));
      put(said, text);
    },
    bar(share, text) {
      shape.className = "meter";
      if (!shape.firstChild) shape.append(el("i"));
      shape.firstChild.style.width = `${100 * share}%`;
      put(said, text);
    },
  };
}

const step = () => el("li", { class: "free" }, el("div", { class: "meter", "aria-hidden": "true" }, el("i")), el("span"));

function showStep(row, s, begin) {
  row.className = s ? "" : "free";
  row.firstChild.firstChild.style.width = s ? `${Math.min(100, 100 * (s.layer + 1) / (begin.layers + 1))}%` : "0";
  const rows = s && (s.decode === s.rows ? `${s.rows === 1 ? "1 text decodes" : `${s.rows} texts decode`}` : `${number(s.rows)} rows of prompts`);
  put(row.lastChild, s ? `Step ${s.step}: ${rows}, ${s.layer >= begin.layers ? "head" : `layer ${s.layer + 1} of ${begin.layers}`}${s.waiting ? `, waits for ${s.waiting}` : ""}, ${time(s.age_us)}` : "");
}

/** legend explains colours. */
export function legend(names, words = (n) => n.replaceAll("_", " ")) {
  return el("ul", { class: "legend" }, names.map((n) => el("li", null, swatch(n), words(n))));
}
