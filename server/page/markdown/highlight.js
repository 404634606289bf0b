// Colours for code: strings, comments, numbers and words that languages reserve. That is little, and
// right for most; a grammar for each language would be a library of its own.

import { el } from "../dom.js";

const longest = 100_000; // characters; longer code stays plain

const words = new Set(`abstract and any as assert async await begin bool boolean break byte case catch chan char class const
continue def default defer delete do done double dyn elif else elsif end enum error except export extends extern false fi
final finally float float32 float64 fn for foreach from func function global go goto guard if impl implements import in
instanceof int int32 int64 interface internal is lambda let long loop map match mod module move mut namespace new nil none
nonlocal not null number object operator or override package pass print private protected protocol pub public raise range
readonly ref rescue return rune select self short sizeof static str string struct super switch template then this throw
throws trait true try type typedef typename typeof uint8 uint32 uint64 undefined unless unsafe unsigned until use using val
var virtual void volatile when where while with yield`.split(/\s+/));
const sqlWords = new Set(`add all alter and as asc between by case create delete desc distinct drop else end exists from
full group having in index inner insert into is join key left like limit not null offset on or order outer primary references
right select set table then union unique update values view when where with`.split(/\s+/));

const hash = new Set(["py", "python", "sh", "bash", "zsh", "shell", "console", "ruby", "rb", "yaml", "yml", "toml", "r", "perl", "makefile", "dockerfile", "ini", "conf", "nix", "elixir", "julia"]);
const plain = new Set(["", "text", "txt", "plain", "plaintext", "output", "log", "diff", "markdown", "md", "csv"]);
const dashes = new Set(["sql", "lua", "haskell", "hs", "ada"]);
const markup = new Set(["html", "xml", "svg", "vue"]);

const string = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/;
const comments = {
  c: /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/,
  hash: /#[^\n]*/,
  dashes: /--[^\n]*/,
  markup: /<!--[\s\S]*?(?:-->|$)/,
};

function family(lang) {
  if (hash.has(lang)) return "hash";
  if (dashes.has(lang)) return "dashes";
  return markup.has(lang) ? "markup" : "c";
}

/** highlight returns texts and elements that show code of a language. */
export function highlight(text, lang) {
  if (plain.has(lang) || text.length > longest) return [text];
  const kind = family(lang), reserved = lang === "sql" ? sqlWords : words;
  const py = kind === "hash" ? '"""[\\s\\S]*?(?:"""|$)|' : "";
  const token = new RegExp(`(${comments[kind].source})|(${py}${string.source})|(\\b\\d[\\w.]*)|([A-Za-z_$][\\w$]*)`, "g");
  const out = [];
  let from = 0;
  for (const m of text.matchAll(token)) {
    const name = nameOf(m, text, reserved, lang === "sql");
    if (!name) continue;
    if (m.index > from) out.push(text.slice(from, m.index));
    out.push(el("span", { class: name, text: m[0] }));
    from = m.index + m[0].length;
  }
  out.push(text.slice(from));
  return out;
}

function nameOf([, comment, quoted, number, word], text, reserved, anyCase) {
  if (comment) return "c-comment";
  if (quoted) return "c-string";
  if (number) return "c-number";
  return reserved.has(anyCase ? word.toLowerCase() : word) ? "c-word" : null;
}
