// The chat: the conversation that is shown, its answers under way, and what is done with both.

import { Answer } from "./answer.js";
import { add, choose, create, path, versions } from "./conversation.js";
import { announce, by, toast } from "./dom.js";
import { View } from "./message.js";

const saveEvery = 1000; // ms while an answer comes

/** Chat shows conversations of a store. hooks are changed(), key() and defaults(). */
export class Chat {
  current = null;
  #store;
  #hooks;
  #views = [];
  #running = new Map(); // conversations' ids to Answers
  #saved = new Map(); // ids to when they were saved last
  #drawing = 0;

  constructor(store, hooks) {
    this.#store = store;
    this.#hooks = hooks;
    const thread = by("thread");
    thread.addEventListener("scroll", () => this.#sticky(), { passive: true });
    new ResizeObserver(() => this.#follow()).observe(by("messages"));
    by("latest").addEventListener("click", () => this.#toEnd());
    addEventListener("pagehide", () => {
      this.#running.forEach((a) => this.#save(a.conversation));
      this.#store.leave();
    });
  }

  /** running tells whether the conversation shown, or one of an id, has an answer under way. */
  running(id = this.current?.id) { return this.#running.has(id); }

  /** underWay returns the conversation of an id if it has an answer under way. */
  underWay(id) { return this.#running.get(id)?.conversation; }

  /** show shows a conversation, or an empty one. */
  show(c) {
    this.current = c ?? create(this.#hooks.defaults());
    this.#redraw();
    this.#toEnd();
    this.#hooks.changed();
  }

  /** send adds a message of the user's and asks for the answer. */
  send(text) {
    if (this.running()) return;
    const c = this.current, last = path(c).at(-1);
    add(c, last?.id ?? "", { role: "user", content: text });
    this.#ask(c);
  }

  /** stop ends the answer under way. What it has said stays. */
  stop(id = this.current.id) { this.#running.get(id)?.stop(); }

  /** editLast lets the last message of the user's be written anew. */
  editLast() {
    if (!this.running()) this.#views.findLast((v) => v.node.role === "user")?.edit();
  }

  /** keep saves the conversation shown, if it has begun. */
  keep() {
    if (Object.keys(this.current.nodes).length > 0) this.#save(this.current);
  }

  // ask has the assistant answer the last message of the path.
  #ask(c) {
    const node = add(c, path(c).at(-1).id, { role: "assistant", content: "", open: true });
    const answer = new Answer(c, node, () => this.#changed(answer));
    this.#running.set(c.id, answer);
    this.#save(c);
    this.#redraw();
    this.#toEnd();
    announce("Waiting for the answer");
    answer.run().then(() => this.#ended(answer));
    this.#hooks.changed();
  }

  #changed(answer) {
    const c = answer.conversation;
    if (performance.now() - (this.#saved.get(c.id) ?? 0) > saveEvery) this.#save(c);
    if (c !== this.current || this.#drawing) return;
    const draw = () => {
      const began = performance.now();
      this.#viewOf(answer.node)?.update();
      // A text that takes long to draw is drawn less often, so the page always has time for others.
      const took = performance.now() - began;
      this.#drawing = took < 8 ? 0 : setTimeout(() => { this.#drawing = 0; this.#changed(answer); }, took * 4);
    };
    this.#drawing = requestAnimationFrame(draw);
  }

  #ended(answer) {
    const { conversation: c, node } = answer;
    this.#running.delete(c.id);
    if (node.error) node.failed_at = Date.now();
    c.updated = Date.now();
    this.#save(c);
    if (c === this.current) this.#viewOf(node)?.end(versions(c, node));
    announce(node.error ? node.error.message : node.finish === "stopped" ? "Stopped" : "The answer is complete");
    if (node.error?.status === 401) this.#hooks.key();
    this.#hooks.changed();
  }

  async #save(c) {
    this.#saved.set(c.id, performance.now());
    try {
      const forgot = await this.#store.put(c);
      if (forgot > 0) toast(`The oldest ${forgot === 1 ? "chat was" : `${forgot} chats were`} forgotten to make room.`);
    } catch (err) {
      toast(`The chat is not kept: ${err.message}`);
    }
  }

  #viewOf(node) { return this.#views.find((v) => v.node === node); }

  #redraw() {
    const c = this.current, nodes = path(c), answer = this.#running.get(c.id);
    for (const v of this.#views) v.gone();
    cancelAnimationFrame(this.#drawing);
    this.#drawing = 0;
    this.#views = nodes.map((node) => {
      if (node.open && node !== answer?.node) { // the page was closed meanwhile
        node.open = false;
        node.finish = "stopped";
      }
      return new View(node, versions(c, node), this.#acts());
    });
    by("messages").replaceChildren(...this.#views.map((v) => v.element));
    by("chat").classList.toggle("empty", nodes.length === 0);
    if (answer) this.#viewOf(answer.node)?.follow(answer);
  }

  #acts() {
    const c = this.current;
    const idle = (f) => (...args) => {
      if (!this.running(c.id)) f(...args);
      else toast("An answer is under way: stop it first.");
    };
    return {
      key: this.#hooks.key,
      retry: idle((node) => {
        delete c.chosen[node.parent]; // what followed belongs to the other version
        if (!node.content && !node.reasoning && !node.calls) delete c.nodes[node.id]; // it never began
        this.#ask(c);
      }),
      edit: idle((node, text) => {
        add(c, node.parent, { role: "user", content: text });
        this.#ask(c);
      }),
      pick: idle((node) => {
        choose(c, node);
        this.#save(c);
        this.#redraw();
        this.#viewOf(node)?.element.querySelector(".versions button:not(:disabled)")?.focus();
      }),
      results: idle((node, texts) => {
        node.answered = true;
        let last = node;
        node.calls.forEach((call, i) => {
          last = add(c, last.id, { role: "tool", call: call.id, name: call.name, content: texts[i] });
        });
        this.#ask(c);
      }),
    };
  }

  // The view stays at the end of an answer that grows, until somebody scrolls up.
  #atEnd = true;

  #sticky() {
    const t = by("thread");
    this.#atEnd = t.scrollHeight - t.scrollTop - t.clientHeight < 40;
    by("latest").hidden = this.#atEnd;
  }

  #follow() {
    if (this.#atEnd) by("thread").scrollTop = by("thread").scrollHeight;
    else this.#sticky();
  }

  #toEnd() {
    this.#atEnd = true;
    this.#follow();
    by("latest").hidden = true;
  }
}
