// Server-sent events over fetch: EventSource can send neither a body nor a key.

/** events yields { event, data } of a response's body until it ends. Comments are left out. */
export async function* events(response) {
  let event = "", data = [];
  for await (const line of lines(response.body)) {
    if (line === "") {
      if (data.length > 0) yield { event, data: data.join("\n") };
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return; // what is left is half an event, and not one
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      for (const p of parts) yield p.endsWith("\r") ? p.slice(0, -1) : p;
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection ends with whoever reads it
  }
}
