// Requests under way: whose they are, how far they have come, and what they cost.

import { el } from "../dom.js";
import { bytes, number } from "../figures.js";
import { put, time } from "./palette.js";

const heads = ["Request", "Class", "State", "In line", "Prompt", "Written", "Experts found", "Device", "Disk"];

/** Requests draws Frame.Requests. */
export class Requests {
  #body = el("tbody");
  #none = el("p", { class: "muted", text: "Nobody asks for anything." });
  #more = el("p", { class: "muted" });
  #rows = new Map();
  element = el("section", { class: "panel", "aria-label": "Requests" }, el("h2", { text: "Requests" }), this.#none,
    el("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Requests under way" },
      el("table", null, el("thead", null, el("tr", null, heads.map((h) => el("th", { scope: "col", text: h })))), this.#body)), this.#more);

  begin() {
    this.#rows.clear();
    this.#body.replaceChildren();
  }

  frame({ requests = [], more = 0 }) {
    this.#none.hidden = requests.length > 0;
    this.element.querySelector(".table-box").hidden = requests.length === 0;
    put(this.#more, more > 0 ? `and ${number(more)} more` : "");
    const seen = new Set();
    for (const r of requests) {
      const id = `${r.id}/${r.choice ?? 0}`;
      seen.add(id);
      if (!this.#rows.has(id)) this.#rows.set(id, row());
      show(this.#rows.get(id), r);
    }
    for (const id of this.#rows.keys()) if (!seen.has(id)) this.#rows.delete(id);
    const rows = requests.map((r) => this.#rows.get(`${r.id}/${r.choice ?? 0}`));
    if (rows.length !== this.#body.children.length || rows.some((r, i) => r !== this.#body.children[i])) this.#body.replaceChildren(...rows);
  }
}

function row() {
  const cells = heads.map(() => el("td"));
  cells[4].append(el("progress", { max: "1", "aria-label": "Prompt" }), el("span"));
  return el("tr", null, cells);
}

function show(row, r) {
  const [name, kind, state, queue, prompt, written, found, device, disk] = row.children;
  put(name, `${r.id.replace(/^req-/, "").slice(0, 8)}${r.choice ? ` (${r.choice + 1})` : ""}`);
  name.title = `${r.id} ${r.path}`;
  put(kind, r.key ? `${r.class}, ${r.key}` : r.class);
  put(state, r.state);
  put(queue, time(r.queue_us));
  showPrompt(prompt, r.prompt);
  put(written, `${number(r.tokens)}${r.limit ? ` of ${number(r.limit)}` : ""}${r.per_s ? `, ${r.per_s.toFixed(1)}/s` : ""}`);
  const picks = r.cost.hit + r.cost.late + r.cost.missed;
  put(found, picks ? `${(100 * r.cost.hit / picks).toFixed(1)} %` : "");
  put(device, time(r.cost.device_us));
  put(disk, `${bytes(r.cost.disk_bytes)}, ${time(r.cost.disk_wait_us)}`);
}

function showPrompt(cell, p) {
  const [bar, said] = cell.children;
  bar.hidden = !p || p.done >= p.tokens;
  if (!p) return put(said, "");
  bar.max = p.tokens;
  bar.value = p.done;
  if (p.done >= p.tokens) return put(said, `${number(p.tokens)}${p.cached ? `, ${number(p.cached)} known` : ""}`);
  put(said, `${number(p.done)} of ${number(p.tokens)}${p.left_us ? `, ${time(p.left_us)} left` : ""}`);
}
