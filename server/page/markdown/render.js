// A text that grows becomes elements that grow: what has not changed stays the element it was, and
// blocks that are finished are not looked at again. So an answer of any length costs the same.

import { el, copyButton } from "../dom.js";
import { highlight } from "./highlight.js";
import { inline } from "./inline.js";
import { parse } from "./blocks.js";

/** Markdown draws a growing text into an element. */
export class Markdown {
  #root;
  #from = 0; // where the first block begins that is not finished
  #live = []; // the blocks from there on, as drawn
  #done = false;
  #told; // called with the text of each block that is finished

  constructor(root, told = () => {}) {
    this.#root = root;
    this.#told = told;
  }

  /** update draws the whole text so far; done says that no more comes. */
  update(text, done) {
    if (this.#done) return;
    this.#done = done;
    const rest = text.slice(this.#from);
    const blocks = parse(rest);
    patch(this.#root, this.#live, blocks, !done);
    const n = done ? blocks.length : settled(blocks, rest);
    for (const b of blocks.slice(0, n)) this.#told(b.node.textContent);
    if (n > 0 && n < blocks.length) this.#from += offset(rest, blocks[n].at);
    this.#live = blocks.slice(n);
  }
}

// settled returns how many blocks no further text can change: all but the last, and the one before
// it while the last one's first line is not whole, for it may still turn out to belong there.
function settled(blocks, text) {
  if (blocks.length === 0) return 0;
  const whole = text.indexOf("\n", offset(text, blocks.at(-1).at)) >= 0;
  return Math.max(0, blocks.length - (whole ? 1 : 2));
}

// offset returns where a line begins.
function offset(text, line) {
  let at = 0;
  for (; line > 0; line--) at = text.indexOf("\n", at) + 1;
  return at;
}

// patch makes the elements of was those of now. The last block is open while the text grows.
function patch(parent, was, now, open) {
  now.forEach((block, i) => {
    block.open = open && i === now.length - 1;
    const before = was[i];
    if (before && before.type === block.type) {
      if (before.src === block.src && before.open === block.open) {
        now[i] = before; // with all that is drawn inside it
        before.at = block.at;
        return;
      }
      block.node = before.node;
      kinds[block.type].grow(before, block);
      return;
    }
    block.node = kinds[block.type].make(block);
    if (before) before.node.replaceWith(block.node);
    else parent.append(block.node);
  });
  for (const extra of was.slice(now.length)) extra.node.remove();
}

// flat is a block that is drawn anew when it has changed.
const flat = (make) => ({
  make,
  grow(was, now) {
    now.node = make(now);
    was.node.replaceWith(now.node);
  },
});

// holder is a block of blocks. inside returns those, and the element they are in.
const holder = (shell, inside, same) => ({
  make(block) {
    const node = shell(block);
    patch(node, [], inside(block), block.open);
    return node;
  },
  grow(was, now) {
    if (same(was, now)) {
      patch(was.node, inside(was), inside(now), now.open);
      return;
    }
    now.node = this.make(now);
    was.node.replaceWith(now.node);
  },
});

function text(tag, block) {
  const e = el(tag);
  inline(e, block.text, block.open);
  return e;
}

function table(block) {
  const row = (cell, texts) => el("tr", null, block.align.map((align, i) => {
    const e = el(cell, { class: `align-${align}` });
    inline(e, texts[i] ?? "");
    return e;
  }));
  // The box scrolls, so it must be reachable by keyboard.
  return el("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Table" },
    el("table", null, el("thead", null, row("th", block.head)), el("tbody", null, block.rows.map((r) => row("td", r)))));
}

function item(block) {
  if (block.done === undefined) return el("li");
  const label = block.done ? "done" : "not done";
  return el("li", { class: "task" }, el("span", { class: block.done ? "box ticked" : "box", role: "img", "aria-label": label }));
}

const kinds = {
  paragraph: flat((b) => text("p", b)),
  heading: flat((b) => text(`h${Math.min(6, b.level + 1)}`, b)), // the page has the first level
  rule: flat(() => el("hr")),
  table: flat(table),
  quote: holder(() => el("blockquote"), (b) => b.blocks, () => true),
  list: holder((b) => el(b.ordered ? "ol" : "ul", { class: b.loose ? null : "tight", start: b.start !== 1 && String(b.start) }), (b) => b.items,
    (a, b) => a.ordered === b.ordered && a.loose === b.loose && a.start === b.start),
  item: holder(item, (b) => b.blocks, (a, b) => a.done === b.done),
  code: {
    make(block) {
      const code = el("code");
      const pre = el("pre", { tabindex: "0" }, code);
      const node = el("figure", { class: "code" },
        el("figcaption", null, el("span", { text: block.lang || "text" }), copyButton("Copy code", () => code.textContent)), pre);
      fill(code, block);
      return node;
    },
    grow(was, now) {
      const code = now.node.querySelector("code"), last = code.lastChild;
      if (was.lang !== now.lang) now.node.querySelector("figcaption span").textContent = now.lang || "text";
      if (!finished(now) && was.lang === now.lang && last && now.text.startsWith(was.text)) last.appendData(now.text.slice(was.text.length));
      else fill(code, now);
    },
  },
};

const finished = (block) => block.closed || !block.open;

// fill writes code, with colours if it is whole.
function fill(code, block) {
  if (finished(block)) code.replaceChildren(...highlight(block.text, block.lang.toLowerCase()));
  else code.replaceChildren(block.text);
}
