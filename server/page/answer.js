// An answer under way: its stream becomes fields of its message. It goes on while another
// conversation is looked at.

import { chat, Failure } from "./api.js";
import { request } from "./conversation.js";

/**
 * Answer asks the server for the message node of a conversation. changed is called after each piece;
 * ended once, after the last.
 */
export class Answer {
  #abort = new AbortController();
  #c;
  #node;
  #changed;
  began = performance.now();
  first = 0; // when the first token came; 0: not yet
  progress = null; // of the prompt: { total, cache, processed, tokens_per_second, left_ms }
  progressed = 0; // when that came

  constructor(c, node, changed) {
    this.#c = c;
    this.#node = node;
    this.#changed = changed;
  }

  get node() { return this.#node; }
  get conversation() { return this.#c; }

  stop() { this.#abort.abort(); }

  async run() {
    const node = this.#node;
    try {
      for await (const chunk of chat(request(this.#c, node), this.#abort.signal)) this.#take(chunk);
    } catch (err) {
      if (this.#abort.signal.aborted) node.finish = "stopped";
      else node.error = told(err);
    }
    node.open = false;
    node.figures = { ...node.figures, total_ms: Math.round(performance.now() - this.began) };
    if (this.first) node.figures.first_ms = Math.round(this.first - this.began);
  }

  #take(chunk) {
    const node = this.#node;
    if (chunk.prompt_progress) {
      this.progress = chunk.prompt_progress;
      this.progressed = performance.now();
    }
    if (chunk.usage) node.figures = { ...node.figures, usage: chunk.usage };
    if (chunk.model) node.model = chunk.model;
    const choice = chunk.choices?.[0];
    if (choice) {
      this.#add(choice.delta ?? {});
      if (choice.finish_reason) node.finish = choice.finish_reason;
    }
    this.#changed(this);
  }

  #add({ content, reasoning_content: reasoning, tool_calls: calls }) {
    const node = this.#node;
    if (!this.first && (content || reasoning || calls)) this.first = performance.now();
    if (reasoning) node.reasoning = (node.reasoning ?? "") + reasoning;
    if ((content || calls) && node.reasoning && !node.thought_ms) node.thought_ms = Math.round(performance.now() - this.first);
    if (content) node.content += content;
    for (const call of calls ?? []) {
      node.calls ??= [];
      const k = (node.calls[call.index ?? 0] ??= { id: "", name: "", arguments: "" });
      if (call.id) k.id = call.id;
      if (call.function?.name) k.name = call.function.name;
      if (call.function?.arguments) k.arguments += call.function.arguments;
    }
  }
}

// told returns what of a failure is kept with the message.
function told(err) {
  if (err instanceof Failure) return { message: err.message, status: err.status, code: err.code, retry: err.retry };
  return { message: `The page failed: ${err.message}`, status: 0, code: "page", retry: 0 };
}

/** advice returns what to do about an error, in a sentence; "" where its message says enough. */
export function advice(error) {
  switch (error.code) {
    case "unreachable": return "Start it again, or look at its terminal; then retry.";
    case "broken": return "The server may have stopped. What came before is kept; retry asks again.";
    case "context_length_exceeded": return "Edit an earlier message to make it shorter, or begin a new chat.";
    case "stopping": return "Retry when it is up again.";
    case "page": return "Reload the page; if it comes again, the conversation may be broken.";
    default: return error.status === 401 ? "Enter a key that the server knows." : "";
  }
}
