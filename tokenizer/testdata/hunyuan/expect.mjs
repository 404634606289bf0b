// Prints cases.json: the ids that tiktoken gives texts as the code of Hunyuan-A13B's tokenizer calls
// it: in normal form C, ranks by line without repeated tokens, 210 special tokens after them.
//   npm install tiktoken@1.0.22 && node expect.mjs > cases.json
import { readFileSync } from "node:fs";
import { Tiktoken } from "tiktoken";

const tokens = [...new Set(readFileSync("hy.tiktoken", "utf8").trim().split("\n").map((line) => line.split(" ")[0]))];
const names = ["endoftext", "startoftext", "bos", "eos", "pad", ...Array.from({ length: 205 }, (_, i) => `extra_${i}`)];
const special = Object.fromEntries(names.map((name, i) => [`<|${name}|>`, tokens.length + i]));
const pattern = [
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)", String.raw`[^\r\n\p{L}\p{N}]?\p{L}+`, String.raw`\p{N}`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`, String.raw`\s*[\r\n]+`, String.raw`\s+(?!\S)`, String.raw`\s+`,
].join("|");
const encoding = new Tiktoken("! 0 " + tokens.join(" "), special, pattern);
const own = [
  "<|startoftext|>You are a helper.<|extra_4|>The reader reads 2025.<|extra_0|>", "<|extra_204|><|extra_205|><|EOS|>", "<|bos|><|eos|><|pad|><|endoftext|>",
  "e\u0301te\u0301 cafe\u0301", "A\u030angstro\u0308m", "<|eos|>\u0338 a", "\u1112\u1161\u11ab", "\ufb01 \u2126 \u212b", "1234567",
];
const kimi = JSON.parse(readFileSync("../kimi/cases.json", "utf8")).map((c) => c.text);
const cases = [...own, ...kimi].map((text) => JSON.stringify({ text, ids: [...encoding.encode(text.normalize("NFC"), "all")] }));
console.log("[\n" + cases.join(",\n") + "\n]");
