// A conversation is a tree: to edit a message, or to try an answer again, makes another branch beside
// the old one, which stays. The path is the branch that is chosen at each fork.

const newID = () => Array.from(crypto.getRandomValues(new Uint8Array(9)), (b) => b.toString(36)).join("");

/** create returns an empty conversation with these settings. */
export function create(settings) {
  const now = Date.now();
  return { id: newID(), title: "", created: now, updated: now, settings: { ...settings }, nodes: {}, chosen: {} };
}

const root = "";

/** add adds a message after another ("" for the first) and chooses it. */
export function add(c, parent, message) {
  const node = { id: newID(), parent, at: Date.now(), ...message };
  c.nodes[node.id] = node;
  choose(c, node);
  if (!c.title && node.role === "user") c.title = node.content.trim().replace(/\s+/g, " ").slice(0, 80);
  return node;
}

/** choose makes a message the one that is shown among its versions. */
export function choose(c, node) {
  c.chosen[node.parent || root] = node.id;
  c.updated = Date.now();
}

/** versions returns the messages that stand at the same place, the oldest first. */
export function versions(c, node) {
  return Object.values(c.nodes).filter((n) => n.parent === node.parent).sort((a, b) => a.at - b.at);
}

/** path returns the messages that are shown, the first one first. */
export function path(c) {
  const out = [];
  for (let node = c.nodes[c.chosen[root]]; node; node = c.nodes[c.chosen[node.id]]) out.push(node);
  return out;
}

/** before returns the messages that lead to one, which is not among them. */
export function before(c, node) {
  const out = [];
  for (let n = c.nodes[node.parent]; n; n = c.nodes[n.parent]) out.unshift(n);
  return out;
}

/** messages returns the conversation up to a message as the server wants it. */
export function messages(c, node) {
  const out = c.settings.system ? [{ role: "system", content: c.settings.system }] : [];
  for (const n of before(c, node)) {
    if (n.role === "tool") {
      out.push({ role: "tool", tool_call_id: n.call, content: n.content });
    } else if (n.role === "user") {
      out.push({ role: "user", content: n.content });
    } else if (n.content || n.calls?.length) {
      const m = { role: "assistant", content: n.content };
      if (n.reasoning) m.reasoning_content = n.reasoning;
      if (n.calls?.length) m.tool_calls = n.calls.map((k) => ({ id: k.id, type: "function", function: { name: k.name, arguments: k.arguments } }));
      out.push(m);
    }
  }
  return out;
}

const numbers = ["temperature", "top_p", "top_k", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "seed", "max_tokens"];

/** request returns the body that asks for a message of the assistant. */
export function request(c, node) {
  const s = c.settings;
  const body = { messages: messages(c, node) };
  if (s.model) body.model = s.model;
  for (const name of numbers) if (s[name] !== undefined && s[name] !== "") body[name] = Number(s[name]);
  if (s.stop) body.stop = s.stop.split("\n").filter(Boolean);
  if (s.tools) body.tools = JSON.parse(s.tools);
  if (s.thinking) body.chat_template_kwargs = { enable_thinking: s.thinking === "on" };
  return body;
}
