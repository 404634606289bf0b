// What the page asks of its server, and what can go wrong with that.

import { events } from "./sse.js";

/** Failure is a request that came to nothing: status 0 is a server that does not answer. */
export class Failure extends Error {
  constructor(message, { status = 0, code = "", retry = 0 } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.retry = retry; // seconds after which to try again; 0: the server did not say
  }
}

const keyName = "moeflux key";

/** key is the key that the server wants, kept as long as the tab. */
export const key = {
  get: () => { try { return sessionStorage.getItem(keyName) ?? ""; } catch { return key.only; } },
  set: (value) => { key.only = value; try { sessionStorage.setItem(keyName, value); } catch { /* kept in key.only */ } },
  only: "",
};

/** ask sends a request; its body, if there is one, is JSON. It throws a Failure unless all is well. */
export async function ask(path, { body, signal } = {}) {
  const headers = {};
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body),
      cache: "no-store", credentials: "same-origin", redirect: "error",
    });
  } catch (err) {
    if (signal?.aborted) throw err;
    throw new Failure("The server does not answer.", { code: "unreachable" });
  }
  if (response.ok) return response;
  throw await failure(response);
}

async function failure(response) {
  let message = `The server answered with ${response.status}.`, code = "";
  try {
    const { error } = await response.json();
    message = error.message ?? message;
    code = error.code ?? "";
  } catch { /* not the server's own answer: a proxy's, perhaps */ }
  return new Failure(message, { status: response.status, code, retry: Number(response.headers.get("Retry-After")) || 0 });
}

/** models returns what is served: a list of { id, context_length }. */
export async function models() {
  return (await (await ask("v1/models")).json()).data ?? [];
}

/**
 * chat asks for an answer and yields the chunks of its stream. It throws a Failure where the stream
 * ends with an error, or before its end.
 */
export async function* chat(body, signal) {
  const response = await ask("v1/chat/completions", { body: { ...body, stream: true, stream_options: { include_usage: true }, return_progress: true }, signal });
  try {
    for await (const { data } of events(response)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Failure(chunk.error.message, { status: response.status, code: chunk.error.code ?? "" });
      yield chunk;
    }
  } catch (err) {
    if (signal?.aborted || err instanceof Failure) throw err;
    throw new Failure("The connection to the server broke off.", { code: "broken" });
  }
  throw new Failure("The connection ended before the answer did.", { code: "broken" });
}
