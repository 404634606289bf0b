// The live feed: GET /debug/live, whose messages package tracing/live documents.

import { ask } from "../api.js";
import { events } from "../sse.js";

const again = 2500; // ms after which to connect again

/**
 * Feed listens to what a model does. hooks are begin(begin), frame(frame, experts), where experts has
 * a byte of state (cells) and of heat for each expert, and trouble(text), "" when there is none.
 */
export class Feed {
  #hooks;
  #abort = null;
  #timer = 0;
  #experts = { cells: new Uint8Array(), heat: new Uint8Array() };

  constructor(hooks) { this.#hooks = hooks; }

  /** start listens until stop, again where the connection ends, unless the server refuses. */
  start(model) {
    this.stop();
    this.#abort = new AbortController();
    this.#listen(model, this.#abort.signal);
  }

  /** stop ends the connection: nothing is sent any more. */
  stop() {
    this.#abort?.abort();
    this.#abort = null;
    clearTimeout(this.#timer);
  }

  async #listen(model, signal) {
    try {
      const response = await ask(`debug/live${model ? `?model=${encodeURIComponent(model)}` : ""}`, { signal });
      for await (const { event, data } of events(response)) {
        if (signal.aborted) return;
        this.#hooks.trouble("");
        if (event === "begin") this.#begin(JSON.parse(data));
        else if (event === "frame") this.#frame(JSON.parse(data));
      }
      if (!signal.aborted) this.#hooks.trouble("The model has left the memory, or the server has stopped.");
    } catch (err) {
      if (signal.aborted) return;
      this.#hooks.trouble(err.message);
      if (err.status >= 400 && err.status < 500 && err.status !== 429) return; // it will not change by itself
    }
    this.#timer = setTimeout(() => this.#listen(model, signal), again);
  }

  #begin(begin) {
    const n = begin.layers * begin.experts;
    this.#experts = { cells: new Uint8Array(n), heat: new Uint8Array(n) };
    this.#hooks.begin(begin);
  }

  #frame(frame) {
    if (frame.experts) merge(this.#experts, frame.experts);
    this.#hooks.frame(frame, this.#experts);
  }
}

const decode = (text) => Uint8Array.from(atob(text ?? ""), (c) => c.charCodeAt(0));

// merge takes over what has changed. Picked holds for one frame.
function merge(experts, now) {
  const cells = decode(now.cells), heat = decode(now.heat);
  if (now.full) {
    experts.cells.set(cells);
    experts.heat.set(heat);
    return;
  }
  now.index?.forEach((at, i) => {
    experts.cells[at] = cells[i];
    experts.heat[at] = heat[i];
  });
}
