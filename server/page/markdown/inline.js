// What stands inside a block: emphasis, code, links. Each text is read once from left to right; a
// mark without its partner is a text. What was searched for in vain is not searched for again, so
// that no text takes longer than its length allows.

import { el } from "../dom.js";

const special = /[\\`*_~[!<\n]|https?:\/\//g;
const deepest = 8;
const longestLabel = 1000;

/**
 * inline adds a text to an element. In a text that still grows (open), a mark whose partner has not
 * come yet holds to the end: otherwise words would change their looks when it comes.
 */
export function inline(parent, text, open = false, depth = 0) {
  const missing = new Set(); // marks without a partner from here on
  let from = 0;
  const plain = (to) => { if (to > from) parent.append(text.slice(from, to)); };
  special.lastIndex = 0;
  for (let m; (m = special.exec(text));) {
    const at = m.index;
    const found = at >= from && piece(text, at, { open, depth, missing });
    if (!found) {
      special.lastIndex = Math.max(at + run(text, at), from);
      continue;
    }
    plain(at);
    parent.append(...found.nodes);
    from = found.end;
    special.lastIndex = from;
  }
  plain(text.length);
}

// run is how many characters to skip at a mark that means nothing.
function run(text, at) {
  let n = 1;
  while ("`*_~".includes(text[at]) && text[at + n] === text[at]) n++;
  return n;
}

function piece(text, at, state) {
  switch (text[at]) {
    case "\\": return escaped(text, at);
    case "\n": return { nodes: [/ {2}$/.test(text.slice(Math.max(0, at - 2), at)) ? el("br") : "\n"], end: at + 1 };
    case "`": return codeSpan(text, at, state);
    case "*": case "_": case "~": return emphasis(text, at, state);
    case "[": return link(text, at, state);
    case "!": return text[at + 1] === "[" ? image(text, at, state) : null;
    case "<": return angle(text, at);
    default: return bare(text, at);
  }
}

function escaped(text, at) {
  const c = text[at + 1];
  if (c === "\n") return { nodes: [el("br")], end: at + 2 };
  return c && /[!-/:-@[-`{-~]/.test(c) ? { nodes: [c], end: at + 2 } : null;
}

function codeSpan(text, at, { open, missing }) {
  const mark = "`".repeat(run(text, at));
  const start = at + mark.length;
  let end = missing.has(mark) ? -1 : text.indexOf(mark, start);
  while (end >= 0 && text[end + mark.length] === "`") end = text.indexOf(mark, end + run(text, end));
  if (end < 0) {
    missing.add(mark);
    if (!open || start === text.length) return null;
    return { nodes: [el("code", { text: text.slice(start) })], end: text.length };
  }
  let inner = text.slice(start, end).replaceAll("\n", " ");
  if (/^ .* $/.test(inner) && inner.trim()) inner = inner.slice(1, -1);
  return { nodes: [el("code", { text: inner })], end: end + mark.length };
}

const wordBefore = (text, at) => /[\p{L}\p{N}]$/u.test(text.slice(Math.max(0, at - 2), at));
const wordAfter = (text, at) => /^[\p{L}\p{N}]/u.test(text.slice(at, at + 2));
const tags = { 1: ["em"], 2: ["strong"], 3: ["strong", "em"] };

function emphasis(text, at, state) {
  const c = text[at], n = run(text, at), start = at + n;
  if (n > 3 || (c === "~" && n !== 2) || state.depth >= deepest) return null;
  if (start < text.length ? /\s/.test(text[start]) : !state.open) return null;
  if (c === "_" && wordBefore(text, at)) return null;
  const mark = c.repeat(n);
  let end = state.missing.has(mark) ? -1 : closing(text, start, c, n);
  if (end < 0) {
    state.missing.add(mark);
    if (!state.open || start === text.length) return null;
  }
  const [outer, inner] = c === "~" ? ["del"] : tags[n];
  const e = el(outer), leaf = inner ? e.appendChild(el(inner)) : e;
  inline(leaf, text.slice(start, end < 0 ? undefined : end), state.open && end < 0, state.depth + 1);
  return { nodes: [e], end: end < 0 ? text.length : end + n };
}

// closing returns where the mark that ends an emphasis begins, or -1.
function closing(text, from, c, n) {
  for (let i = from; i < text.length; i++) {
    if (text[i] === "\\") {
      i++;
    } else if (text[i] === "`") {
      const k = run(text, i), end = text.indexOf("`".repeat(k), i + k);
      i = end < 0 ? i + k - 1 : end + k - 1;
    } else if (text[i] === c) {
      const k = run(text, i);
      const right = i > from && !/\s/.test(text[i - 1]) && !(c === "_" && wordAfter(text, i + k));
      if (right && (k === n || (k === 3 && n < 3))) return k === n ? i : i + (3 - n);
      i += k - 1;
    }
  }
  return -1;
}

/** href returns the address of a link that may be followed, or null. */
export function href(address) {
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function anchor(address) {
  return el("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow" });
}

// label finds the end of [label](address "title"), from the opening bracket.
function label(text, at, missing) {
  if (missing.has("[")) return null;
  let nested = 0, i = at;
  const end = Math.min(text.length, at + longestLabel);
  for (; i < end; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "[") nested++;
    else if (text[i] === "]" && --nested === 0) break;
  }
  if (i >= end) {
    if (end === text.length) missing.add("[");
    return null;
  }
  const m = /^\((?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\([^\s()]*\))*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/.exec(text.slice(i + 1, i + 1 + 4096));
  return m && { inner: text.slice(at + 1, i), address: m[1] ?? m[2], end: i + 1 + m[0].length };
}

function link(text, at, { depth, missing }) {
  const l = depth < deepest && label(text, at, missing);
  if (!l) return null;
  const address = href(l.address);
  const e = address ? anchor(address) : el("span");
  inline(e, l.inner, false, depth + 1);
  return { nodes: [e], end: l.end };
}

// Images are not fetched: their address would tell others that somebody reads it. They are links.
function image(text, at, { missing }) {
  const l = label(text, at + 1, missing);
  if (!l) return null;
  const address = href(l.address), name = `image: ${l.inner || "untitled"}`;
  const e = address ? anchor(address) : el("span");
  e.classList.add("image");
  e.append(name);
  return { nodes: [e], end: l.end };
}

function angle(text, at) {
  const m = /^<(?:(https?:\/\/[^\s<>]+)|([^\s<>@]+@[^\s<>@]+)|(br) ?\/?)>/.exec(text.slice(at, at + 2048));
  if (!m) return null;
  if (m[3]) return { nodes: [el("br")], end: at + m[0].length };
  const address = href(m[1] ?? `mailto:${m[2]}`);
  if (!address) return null;
  const e = anchor(address);
  e.append(m[1] ?? m[2]);
  return { nodes: [e], end: at + m[0].length };
}

function bare(text, at) {
  if (wordBefore(text, at)) return null;
  let [address] = /^https?:\/\/[^\s<>"`*]*/.exec(text.slice(at, at + 2048));
  address = address.replace(/[.,:;!?'_~]+$/, "");
  while (address.endsWith(")") && address.split("(").length < address.split(")").length) address = address.slice(0, -1);
  const target = href(address);
  if (!target) return null;
  const e = anchor(target);
  e.append(address);
  return { nodes: [e], end: at + address.length };
}
