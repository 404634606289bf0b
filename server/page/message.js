// How one message looks, and how it changes while it is written.

import { advice } from "./answer.js";
import { announce, button, copyButton, el, icon } from "./dom.js";
import { figures, progress } from "./figures.js";
import { Markdown } from "./markdown/render.js";
import { callCards, resultForm } from "./toolview.js";

/**
 * View shows a message. acts has what can be done with it: retry(node), edit(node, text),
 * pick(node), results(node, texts), key().
 */
export class View {
  #acts;
  #answer = null; // the Answer under way, if there is one
  #parts = {};
  #clock = 0;

  constructor(node, versions, acts) {
    this.node = node;
    this.#acts = acts;
    this.#parts.tools = el("div", { class: "actions", role: "group", "aria-label": "Message" });
    this.element = el("article", { class: `message ${node.role}`, data: { id: node.id }, "aria-label": names[node.role] });
    if (node.role === "assistant") this.#assistant();
    else this.#said();
    this.#actions(versions);
  }

  /** follow shows an answer while it comes. */
  follow(answer) {
    this.#answer = answer;
    this.element.setAttribute("aria-busy", "true");
    this.#clock = setInterval(() => this.update(), 250); // for the time that is left
    this.update();
  }

  /** update shows what has come. */
  update() {
    const { node } = this, p = this.#parts, open = this.#answer !== null;
    if (node.role !== "assistant") return;
    this.#reasoning(open);
    if (node.content || p.text) {
      if (!p.text) {
        p.text = el("div", { class: "text" });
        p.markdown = new Markdown(p.text, (text) => open && announce(text));
        p.body.append(p.text);
      }
      p.markdown.update(node.content, !open);
    }
    p.calls.replaceChildren(...callCards(node, open));
    p.wait.replaceChildren(...(open ? progress(this.#answer) : []));
    p.text?.classList.toggle("growing", open);
  }

  /** end shows the message as it stays. versions is as for the constructor. */
  end(versions) {
    clearInterval(this.#clock);
    this.#answer = null;
    this.element.removeAttribute("aria-busy");
    this.update();
    this.#actions(versions);
    this.#foot();
  }

  /** gone says that the view is no longer shown. */
  gone() { clearInterval(this.#clock); }

  #said() {
    const { node } = this;
    if (node.role === "tool") {
      this.element.append(el("details", { class: "card result" },
        el("summary", null, icon("check"), el("span", { text: `Result of ${node.name}` })), el("pre", { tabindex: "0", text: node.content })));
    } else {
      this.element.append(el("div", { class: "bubble", text: node.content }), this.#parts.tools);
    }
  }

  #assistant() {
    const p = this.#parts;
    p.body = el("div", { class: "body" });
    p.calls = el("div", { class: "calls" });
    p.wait = el("div", { class: "wait" });
    p.foot = el("div", { class: "foot" });
    this.element.append(p.body, p.calls, p.wait, p.foot, p.tools);
    if (!this.node.open) {
      this.update();
      this.#foot();
    }
  }

  #reasoning(open) {
    const { node } = this, p = this.#parts;
    if (!node.reasoning) return;
    if (!p.reasoning) {
      p.thought = el("div", { class: "thought text" });
      p.thinking = new Markdown(p.thought);
      p.label = el("span");
      p.reasoning = el("details", { class: "reasoning" }, el("summary", null, p.label), p.thought);
      p.body.prepend(p.reasoning);
    }
    const still = open && !node.content && !node.calls;
    const spent = node.thought_ms ? ` for ${Math.max(1, Math.round(node.thought_ms / 1000))} s` : "";
    p.label.textContent = still ? "Thinking …" : `Thought${spent}`;
    p.reasoning.classList.toggle("growing", still);
    p.thinking.update(node.reasoning, !still);
  }

  #foot() {
    const { node } = this, p = this.#parts;
    p.foot.replaceChildren();
    if (node.calls?.length && !node.error && !node.answered) p.foot.append(resultForm(node, (texts) => this.#acts.results(node, texts)));
    if (node.error) p.foot.append(this.#error(node.error));
    const line = figures(node);
    if (line) p.foot.append(line);
  }

  #error(error) {
    const box = el("div", { class: "error", role: "alert" }, el("p", { text: `${sentence(error.message)} ${advice(error)}` }));
    const again = el("button", { type: "button", text: "Retry", onclick: () => this.#acts.retry(this.node) });
    if (error.status === 401) box.append(el("button", { type: "button", text: "Enter a key", onclick: () => this.#acts.key() }));
    box.append(again);
    const until = this.node.failed_at ? this.node.failed_at + error.retry * 1000 : 0;
    const count = () => {
      const left = Math.ceil((until - Date.now()) / 1000);
      again.disabled = left > 0;
      again.textContent = left > 0 ? `Retry in ${left} s` : "Retry";
      return left > 0;
    };
    if (count()) this.#clock = setInterval(() => count() || clearInterval(this.#clock), 250);
    return box;
  }

  #actions(versions) {
    const { node } = this, tools = this.#parts.tools;
    tools.replaceChildren();
    if (node.open) return;
    const at = versions.indexOf(node);
    if (versions.length > 1) {
      tools.append(el("span", { class: "versions" },
        button("left", "Version before", () => this.#acts.pick(versions[at - 1]), { disabled: at === 0 }),
        el("span", { text: `${at + 1} / ${versions.length}` }),
        button("right", "Next version", () => this.#acts.pick(versions[at + 1]), { disabled: at === versions.length - 1 })));
    }
    if (node.content) tools.append(copyButton("Copy message", () => node.content));
    if (node.role === "user") tools.append(button("edit", "Edit message", () => this.edit()));
    if (node.role === "assistant") tools.append(button("retry", "Try again", () => this.#acts.retry(node)));
  }

  /** edit lets a message of the user's be written anew. */
  edit() {
    const { node } = this;
    const bubble = this.element.querySelector(".bubble");
    if (!bubble) return;
    const area = el("textarea", { class: "editor", "aria-label": "Edit message", value: node.content, rows: "1" });
    const leave = () => { form.replaceWith(bubble); this.#parts.tools.hidden = false; };
    const form = el("form", {
      class: "editing",
      onsubmit: (e) => {
        e.preventDefault();
        if (area.value.trim()) this.#acts.edit(node, area.value);
      },
      onkeydown: (e) => {
        if (e.key === "Escape") leave();
        else if (e.key === "Enter" && !e.shiftKey && !e.isComposing) form.requestSubmit();
        else return;
        e.preventDefault();
        e.stopPropagation();
      },
    }, area, el("div", { class: "row" },
      el("button", { type: "button", text: "Cancel", onclick: leave }), el("button", { type: "submit", class: "primary", text: "Send" })));
    bubble.replaceWith(form);
    this.#parts.tools.hidden = true;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }
}

// sentence makes a sentence of what the server says of an error.
const sentence = (text) => text.replace(/^\p{Ll}/u, (c) => c.toUpperCase()).replace(/[^.!?…]$/, "$&.");

const names = { user: "You", assistant: "Answer", tool: "Tool result" };
