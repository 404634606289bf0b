"""Prints cases.json: the pieces into which the splitting rules that GGUF files name cut texts.

The expressions are those that the models' makers publish, in tokenizer.json or in the code of
their tokenizers; package regex (2026.5.9) applies them.
    python3 expect.py > cases.json
"""
import json
import random
import unicodedata

import regex

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def words(numbers, letters=r"\p{L}"):
    """The expression of Qwen2, Llama 3 and GLM, which differ in numbers and marks."""
    inside = letters if letters == r"\p{L}" else "[" + letters + "]"
    return [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?" + inside + "+|" + numbers + r"| ?[^\s" + letters + r"\p{N}]+[\r\n]*|" + SPACE]


def cased(upper, lower, slash):
    """The expressions that tell capitals from small letters."""
    before = r"[^\r\n\p{L}\p{N}]?"
    return [before + upper + "*" + lower + "+" + CONTRACTION + "?|" + before + upper + "+" + lower + "*" + CONTRACTION + "?"
            + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n" + slash + "]*|" + SPACE]


O200K = cased(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", "/")
KIMI = [r"[\p{Han}]+|" + cased(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", "")[0]]
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + SPACE,
]
QWEN2 = words(r"\p{N}")
GLM = words(r"\p{N}{1,3}")
# Names, expressions one after the other, and whether text is brought to normal form C before.
RULES = {
    "qwen2": (QWEN2, True), "hunyuan": (QWEN2, True), "qwen35": (words(r"\p{N}", r"\p{L}\p{M}"), True),
    "glm4": (GLM, False), "chatglm-bpe": (GLM, False), "gpt-4o": (O200K, False), "minimax-m2": (O200K, False),
    "kimi-k2": (KIMI, False), "deepseek-v3": (DEEPSEEK, False), "joyai-llm": (DEEPSEEK, False), "hunyuan-dense": (DEEPSEEK, False),
}

TEXTS = [
    "The reader reads.", "They're THERE'S we'LL can't o'ſ x'S 'tis I'D'VE", "1 12 123 1234 12345 3.14 1,000,000 x1y22z333",
    "HttpServer getHTTPResponse ABCdefGHI", "func main() {\n\tfmt.Println(\"hi\")\n}\n", "https://a.b/c//d?e=f&g=h#i\r\n\r\n",
    "模型从磁盘读取专家2025年12月", "ひらがなとカタカナ漢字まじり文123です", "한국어 텍스트와 English", "нещо на Български, ёлка",
    "e\u0301te\u0301 cafe\u0301 A\u030angstro\u0308m", "किताबें पढ़ना कठिन है", "กำลังทดสอบ", "שָׁלוֹם עולם", "السلام ١٢٣٤ عليكم",
    "   leading and trailing   ", "a  b   c\t\td\n\n\n  e \n", "\u3000全角\u3000空白\u00a0nbsp\u2003em",
    "!!!??? ...---=== +++ $$$ ^^^ ~~~ |||", "price: 5€ 10% ½ ² Ⅷ 𝟘𝟙 \u2150", "😀😁 👩\u200d👩\u200d👧 🇩🇪 ✅/✅\n", "a/b\\c//\n/d [x](y) {z} <w> `v`",
    "ǅungla ǅUNGLA ʰaªB AªBªC", "_snake_case __init__ kebab-case CamelCase", "\"quoted\" 'single' “curly” ‘it’s’", "<|im_start|>user\nhi<|im_end|>",
    "tab\tseparated\tvalues\r\nline two\rline three", "x" * 40 + " " * 17 + "y" * 3, "〇〡⺀㊀々〻㐀㐁 中A中b", "\ufeffBOM zero\u200bwidth",
    "🚀 (normal) 😶\u200d🌫️ (multiple emojis concatenated) ✅ 🦙🦙 3 33 333 3333 33333 3.3 3..3 កាន់តែពិសេសអាច😁 ?我想在apple工作1314151天～ I've been 'told he's there, 'RE you sure?",
]
ALPHABET = list("abZS'  \t\n\r019.,-/_(<$+é") + ["ß", "К", "ա", "あ", "カ", "中", "文", "한", "\u0301", "\u094d", "ª", "ǅ", "½", "٣", "\u00a0", "\u3000", "😀", "€", "…", "’"]


def split(expressions, text):
    """Each expression cuts the pieces of the one before; what lies between its matches is a piece, too."""
    pieces = [text] if text else []
    for e in expressions:
        flags = regex.V1 if "&&[" in e else regex.V0
        cut = []
        for piece in pieces:
            end = 0
            for m in regex.finditer(e, piece, flags):
                cut += [piece[end:m.start()], m.group()]
                end = m.end()
            cut.append(piece[end:])
        pieces = [p for p in cut if p]
    return pieces


rng = random.Random(7)
texts = TEXTS + ["".join(rng.choice(ALPHABET) for _ in range(rng.randint(2, 30))) for _ in range(60)]
cases = []
for text in texts:
    # Rules that cut a text alike share a line.
    by = {}
    for name, (expressions, nfc) in RULES.items():
        pieces = split(expressions, unicodedata.normalize("NFC", text) if nfc else text)
        by.setdefault(json.dumps(pieces, ensure_ascii=True), []).append(name)
    for pieces, names in by.items():
        cases.append('{"rules":%s,"text":%s,\n "pieces":%s}' % (json.dumps(names), json.dumps(text), pieces))
print("[\n" + ",\n".join(cases) + "\n]")
