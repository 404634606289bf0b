// Prints cases.json: the ids that tiktoken gives the texts of the cases.json that is there.
//   npm install tiktoken@1.0.22 && node expect.mjs > new.json
import { readFileSync } from "node:fs";
import { Tiktoken } from "tiktoken";

const model = readFileSync("tiktoken.model", "utf8");
const config = JSON.parse(readFileSync("tokenizer_config.json", "utf8"));
const base = model.trim().split("\n").length;
const special = {};
for (let id = base; id < base + 256; id++) {
  special[config.added_tokens_decoder[id]?.content ?? `<|reserved_token_${id}|>`] = id;
}
const upper = String.raw`[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`;
const lower = String.raw`[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`;
const before = String.raw`[^\r\n\p{L}\p{N}]?`, after = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
const pattern = [
  String.raw`[\p{Han}]+`, `${before}${upper}*${lower}+${after}`, `${before}${upper}+${lower}*${after}`,
  String.raw`\p{N}{1,3}`, String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`, String.raw`\s*[\r\n]+`,
  String.raw`\s+(?!\S)`, String.raw`\s+`,
].join("|");

// The binding reads ranks as "! first-rank token token ...", tokens in order of rank.
const ranks = "! 0 " + model.trim().split("\n").map((line) => line.split(" ")[0]).join(" ");
const encoding = new Tiktoken(ranks, special, pattern);
const cases = JSON.parse(readFileSync("cases.json", "utf8")).map(({ text }) =>
  JSON.stringify({ text, ids: [...encoding.encode(text, "all")] }));
console.log("[\n" + cases.join(",\n") + "\n]");
