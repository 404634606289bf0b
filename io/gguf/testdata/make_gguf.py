"""Writes the GGUF files beside this script, and what their numbers are.

The script packs codes and scales that it has chosen, and computes from these, not from the bytes,
what each number is: exactly, as a fraction, rounded once to float32. So it goes the other way than
a reader does. It needs nothing but Python 3.8 and makes the same bytes each time:

    python3 make_gguf.py
"""

import json
import random
import struct
from fractions import Fraction
from pathlib import Path

HERE = Path(__file__).parent
rng = random.Random(18)

# Exact numbers: a fraction and the sign that a zero keeps.


def half(bits):
    """The value of a finite fp16 number."""
    exp, frac = bits >> 10 & 31, bits & 1023
    size = Fraction(frac, 1 << 24) if exp == 0 else Fraction(1024 + frac) * Fraction(2) ** (exp - 25)
    return (-size, True) if bits >> 15 else (size, False)


def times(number, *integers):
    value, negative = number
    for i in integers:
        value, negative = value * i, negative != (i < 0)
    return value, negative


def plus(a, b):
    value = a[0] + b[0]
    if value != 0:
        return value, value < 0
    return value, a[1] and b[1]


def minus(a, b):
    return plus(a, (-b[0], not b[1]))


def float32(number):
    """The bits of the nearest float32, ties to even."""
    value, negative = number
    sign, size = int(negative) << 31, abs(value)
    if size == 0:
        return sign
    exp = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exp > size:
        exp -= 1
    exp = max(exp, -126)
    steps = round(size / Fraction(2) ** (exp - 23))
    if steps == 1 << 24:
        steps, exp = steps >> 1, exp + 1
    if exp > 127:
        return sign | 255 << 23
    if steps < 1 << 23:  # subnormal
        return sign | steps
    return sign | exp + 127 << 23 | steps & (1 << 23) - 1


# What a block is made of.


def scale():
    """The bits of a finite fp16 number: any, ordinary, subnormal, 0."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.randrange(1 << 16) & 0xFBFF
    if kind == 1:
        return rng.randrange(1 << 10) | rng.randrange(2) << 15
    return rng.randrange(2) << 15 | rng.randrange(8, 20) << 10 | rng.randrange(1 << 10)


def codes(n, top):
    return [rng.randrange(top) for _ in range(n)]


def u16(n):
    return struct.pack("<H", n)


def nibbles(c):
    """32 codes: those of the first half lie in the low nibbles."""
    return bytes(c[j] & 15 | (c[j + 16] & 15) << 4 for j in range(16))


def fifth_bits(c):
    return struct.pack("<I", sum((x >> 4) << j for j, x in enumerate(c)))


def q4_0():
    d, c = scale(), codes(32, 16)
    return u16(d) + nibbles(c), [times(half(d), x - 8) for x in c]


def q4_1():
    d, m, c = scale(), scale(), codes(32, 16)
    return u16(d) + u16(m) + nibbles(c), [plus(times(half(d), x), half(m)) for x in c]


def q5_0():
    d, c = scale(), codes(32, 32)
    return u16(d) + fifth_bits(c) + nibbles(c), [times(half(d), x - 16) for x in c]


def q5_1():
    d, m, c = scale(), scale(), codes(32, 32)
    return u16(d) + u16(m) + fifth_bits(c) + nibbles(c), [plus(times(half(d), x), half(m)) for x in c]


def q8_0():
    d, c = scale(), [x - 128 for x in codes(32, 256)]
    return u16(d) + struct.pack("<32b", *c), [times(half(d), x) for x in c]


TABLE = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def iq4_nl():
    d, c = scale(), codes(32, 16)
    return u16(d) + nibbles(c), [times(half(d), TABLE[x]) for x in c]


E2M1 = [Fraction(x, 2) for x in (0, 1, 2, 3, 4, 6, 8, 12)]


def mxfp4():
    e = rng.choice([0, 1, 2, 100, 126, 127, 128, 140, 254])
    c = codes(32, 16)
    power = Fraction(2) ** (e - 127)
    return bytes([e]) + nibbles(c), [(E2M1[x & 7] * power * (-1) ** (x >> 3), x >= 8) for x in c]


def quarters(c, bits=2):
    """256 codes of two bits: a byte has one of each 32 of its half, from the lowest bits on."""
    out = bytearray(64)
    for i, x in enumerate(c):
        out[i // 128 * 32 + i % 32] |= x << i % 128 // 32 * 2
    return bytes(out)


def q2_k():
    d, dmin, c, s, m = scale(), scale(), codes(256, 4), codes(16, 16), codes(16, 16)
    raw = bytes(a | b << 4 for a, b in zip(s, m)) + quarters(c) + u16(d) + u16(dmin)
    return raw, [minus(times(half(d), s[i // 16], x), times(half(dmin), m[i // 16])) for i, x in enumerate(c)]


def q3_k():
    d, c, s = scale(), codes(256, 8), codes(16, 64)
    high = bytearray(32)
    for i, x in enumerate(c):
        high[i % 32] |= (x >> 2) << i // 32
    low = bytes(s[j] & 15 | (s[j + 8] & 15) << 4 for j in range(8))
    top = bytes(sum((s[j + 4 * k] >> 4) << 2 * k for k in range(4)) for j in range(4))
    raw = bytes(high) + quarters([x & 3 for x in c]) + low + top + u16(d)
    return raw, [times(half(d), s[i // 16] - 32, x - 4) for i, x in enumerate(c)]


def six_bits(s, m):
    """8 scales and 8 minima of 6 bits in 12 bytes."""
    first = [s[j] | (s[j + 4] >> 4) << 6 for j in range(4)]
    second = [m[j] | (m[j + 4] >> 4) << 6 for j in range(4)]
    third = [s[j + 4] & 15 | (m[j + 4] & 15) << 4 for j in range(4)]
    return bytes(first + second + third)


def pairs(c):
    """256 codes of four bits: of each 64, the first 32 lie in the low nibbles."""
    return b"".join(bytes(c[g + l] & 15 | (c[g + 32 + l] & 15) << 4 for l in range(32)) for g in range(0, 256, 64))


def with_minimum(d, dmin, s, m, c):
    return [minus(times(half(d), s[i // 32], x), times(half(dmin), m[i // 32])) for i, x in enumerate(c)]


def q4_k():
    d, dmin, c, s, m = scale(), scale(), codes(256, 16), codes(8, 64), codes(8, 64)
    return u16(d) + u16(dmin) + six_bits(s, m) + pairs(c), with_minimum(d, dmin, s, m, c)


def q5_k():
    d, dmin, c, s, m = scale(), scale(), codes(256, 32), codes(8, 64), codes(8, 64)
    high = bytes(sum((c[32 * g + l] >> 4) << g for g in range(8)) for l in range(32))
    return u16(d) + u16(dmin) + six_bits(s, m) + high + pairs(c), with_minimum(d, dmin, s, m, c)


def q6_k():
    d, c, s = scale(), codes(256, 64), [x - 128 for x in codes(16, 256)]
    low = bytearray(128)
    for i, x in enumerate(c):
        h, r = divmod(i, 128)
        low[64 * h + r % 64] |= (x & 15) << r // 64 * 4
    raw = bytes(low) + quarters([x >> 4 for x in c]) + struct.pack("<16b", *s) + u16(d)
    return raw, [times(half(d), s[i // 16], x - 32) for i, x in enumerate(c)]


def iq4_xs():
    d, c, s = scale(), codes(256, 16), codes(8, 64)
    high = u16(sum((x >> 4) << 2 * g for g, x in enumerate(s)))
    low = bytes(s[2 * j] & 15 | (s[2 * j + 1] & 15) << 4 for j in range(4))
    raw = u16(d) + high + low + b"".join(nibbles(c[g : g + 32]) for g in range(0, 256, 32))
    return raw, [times(half(d), s[i // 32] - 32, TABLE[x]) for i, x in enumerate(c)]


def f32():
    bits = rng.randrange(1 << 32)
    return struct.pack("<I", bits), bits


def bf16():
    bits = rng.randrange(1 << 16)
    return u16(bits), bits << 16


def f16():
    if rng.randrange(16) == 0:  # infinite
        sign = rng.randrange(2)
        return u16(sign << 15 | 31 << 10), sign << 31 | 255 << 23
    bits = rng.randrange(1 << 16) & 0xFBFF
    return u16(bits), half(bits)


# number, values and bytes of a block, one random block
TYPES = {
    "F32": (0, 1, 4, f32),
    "F16": (1, 1, 2, f16),
    "Q4_0": (2, 32, 18, q4_0),
    "Q4_1": (3, 32, 20, q4_1),
    "Q5_0": (6, 32, 22, q5_0),
    "Q5_1": (7, 32, 24, q5_1),
    "Q8_0": (8, 32, 34, q8_0),
    "Q2_K": (10, 256, 84, q2_k),
    "Q3_K": (11, 256, 110, q3_k),
    "Q4_K": (12, 256, 144, q4_k),
    "Q5_K": (13, 256, 176, q5_k),
    "Q6_K": (14, 256, 210, q6_k),
    "IQ4_NL": (20, 32, 18, iq4_nl),
    "IQ4_XS": (23, 256, 136, iq4_xs),
    "BF16": (30, 1, 2, bf16),
    "MXFP4": (39, 32, 17, mxfp4),
}


class Tensor:
    """A tensor of random blocks; shape is outermost first."""

    def __init__(self, name, kind, *shape):
        self.name, self.kind, self.shape = name, kind, shape
        number, length, size, block = TYPES[kind]
        count = 1
        for axis in shape:
            count *= axis
        made = [block() for _ in range(count // length)]
        self.raw = b"".join(raw for raw, _ in made)
        assert len(self.raw) == count // length * size
        self.bits = []
        for _, values in made:
            for v in values if isinstance(values, list) else [values]:
                self.bits.append(v if isinstance(v, int) else float32(v))


# The container. Metadata is a list of (key, type, value); an array's value is (type, list).

SIMPLE = {"u8": (0, "B"), "i8": (1, "b"), "u16": (2, "H"), "i16": (3, "h"), "u32": (4, "I"), "i32": (5, "i"),
          "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q"), "i64": (11, "q"), "f64": (12, "d")}
NUMBER = {**{k: n for k, (n, _) in SIMPLE.items()}, "string": 8, "array": 9}


def text(s, order):
    raw = s.encode()
    return struct.pack(order + "Q", len(raw)) + raw


def value(kind, v, order):
    if kind == "string":
        return text(v, order)
    if kind == "array":
        of, items = v
        return struct.pack(order + "IQ", NUMBER[of], len(items)) + b"".join(value(of, x, order) for x in items)
    return struct.pack(order + SIMPLE[kind][1], v)


def write(name, metadata, tensors, version=3, order="<"):
    alignment = next((v for k, _, v in metadata if k == "general.alignment"), 32)
    out = b"GGUF" + struct.pack(order + "IQQ", version, len(tensors), len(metadata))
    for key, kind, v in metadata:
        out += text(key, order) + struct.pack(order + "I", NUMBER[kind]) + value(kind, v, order)
    at, places = 0, []
    for t in tensors:
        places.append(at)
        at += -(-len(t.raw) // alignment) * alignment
    for t, place in zip(tensors, places):
        out += text(t.name, order) + struct.pack(order + "I", len(t.shape))
        out += struct.pack(order + "%dQ" % len(t.shape), *reversed(t.shape))
        out += struct.pack(order + "IQ", TYPES[t.kind][0], place)
    out += bytes(-len(out) % alignment)
    for t, place in zip(tensors, places):
        out += t.raw + bytes(-len(t.raw) % alignment)
    (HERE / name).write_bytes(out)


EVERY = [
    ("general.architecture", "string", "test"),
    ("a.u8", "u8", 200), ("a.i8", "i8", -100), ("a.u16", "u16", 60000), ("a.i16", "i16", -30000),
    ("a.u32", "u32", 4000000000), ("a.i32", "i32", -2000000000),
    ("a.u64", "u64", 2**63 + 1), ("a.i64", "i64", -(2**63)),
    ("a.f32", "f32", 0.1), ("a.f64", "f64", 0.1), ("a.true", "bool", True), ("a.false", "bool", False),
    ("a.text", "string", " spaces and äöü \n"), ("a.empty", "string", ""),
    ("a.numbers", "array", ("i32", [3, -1, 2])), ("a.bools", "array", ("bool", [True, False])),
    ("a.texts", "array", ("string", ["", " ", "three"])), ("a.none", "array", ("f32", [])),
    ("a.nested", "array", ("array", [("u8", [1, 2]), ("string", ["x"])])),
]


def moe():
    """A tiny qwen3moe: 2 layers, 3 experts of which 2 are used, three types of weights."""
    metadata = [
        ("general.architecture", "string", "qwen3moe"), ("general.name", "string", "Tiny MoE"),
        ("general.alignment", "u32", 64),
        ("qwen3moe.block_count", "u32", 2), ("qwen3moe.context_length", "u32", 4096),
        ("qwen3moe.embedding_length", "u32", 64), ("qwen3moe.attention.head_count", "u32", 4),
        ("qwen3moe.attention.head_count_kv", "u32", 2), ("qwen3moe.attention.key_length", "u32", 16),
        ("qwen3moe.expert_count", "u32", 3), ("qwen3moe.expert_used_count", "u32", 2),
        ("qwen3moe.expert_feed_forward_length", "u32", 32),
        ("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.pre", "string", "qwen2"),
        ("tokenizer.ggml.tokens", "array", ("string", ["a", "b", "Ġ", "c"])),
        ("tokenizer.ggml.token_type", "array", ("i32", [1, 1, 1, 3])), ("tokenizer.ggml.merges", "array", ("string", [])),
        ("tokenizer.chat_template", "string", "{{ messages }}"),
    ]
    tensors = [Tensor("token_embd.weight", "Q8_0", 4, 64), Tensor("output_norm.weight", "F32", 64)]
    for n in range(2):
        p = "blk.%d." % n
        tensors += [
            Tensor(p + "attn_norm.weight", "F32", 64),
            Tensor(p + "attn_q.weight", "Q8_0", 64, 64), Tensor(p + "attn_k.weight", "Q8_0", 32, 64),
            Tensor(p + "attn_v.weight", "Q8_0", 32, 64), Tensor(p + "attn_output.weight", "Q8_0", 64, 64),
            Tensor(p + "attn_q_norm.weight", "F32", 16), Tensor(p + "attn_k_norm.weight", "F32", 16),
            Tensor(p + "ffn_norm.weight", "F32", 64), Tensor(p + "ffn_gate_inp.weight", "F32", 3, 64),
            Tensor(p + "ffn_gate_exps.weight", "Q4_0", 3, 32, 64), Tensor(p + "ffn_up_exps.weight", "Q4_0", 3, 32, 64),
            Tensor(p + "ffn_down_exps.weight", "Q5_0" if n else "Q4_0", 3, 64, 32),
        ]
    return metadata, tensors


def deepseek():
    """A tiny deepseek2: a dense layer, one with experts and a shared one, a draft layer."""
    k = "deepseek2."
    metadata = [
        ("general.architecture", "string", "deepseek2"),
        (k + "block_count", "u32", 3), (k + "nextn_predict_layers", "u32", 1), (k + "leading_dense_block_count", "u32", 1),
        (k + "embedding_length", "u32", 32), (k + "context_length", "u64", 8192), (k + "vocab_size", "u32", 8),
        (k + "attention.head_count", "u32", 2), (k + "attention.head_count_kv", "u32", 1),
        (k + "attention.key_length", "u32", 40), (k + "attention.key_length_mla", "u32", 24),
        (k + "expert_count", "u32", 2), (k + "expert_used_count", "u32", 1),
        (k + "expert_feed_forward_length", "u32", 16), (k + "expert_shared_count", "u32", 2),
    ]
    tensors = [Tensor("token_embd.weight", "F16", 8, 32), Tensor("output.weight", "Q8_0", 8, 32)]
    for n in range(3):
        p = "blk.%d." % n
        tensors += [Tensor(p + "attn_kv_a_mqa.weight", "BF16", 16, 32), Tensor(p + "attn_output.weight", "Q8_0", 32, 32)]
        if n == 0:
            tensors.append(Tensor(p + "ffn_gate.weight", "Q8_0", 64, 32))
            continue
        tensors += [Tensor(p + "ffn_gate_up_exps.weight", "MXFP4", 2, 32, 32), Tensor(p + "ffn_down_exps.weight", "F32", 2, 32, 16)]
        tensors.append(Tensor(p + "ffn_gate_shexp.weight", "Q8_0", 32, 32))
    tensors.append(Tensor("blk.2.nextn.eh_proj.weight", "F32", 32, 64))
    return metadata, tensors


def qwen3next():
    """A tiny qwen3next: a layer of linear attention and one of full attention, sizes by layer."""
    k = "qwen3next."
    metadata = [
        ("general.architecture", "string", "qwen3next"), (k + "block_count", "u32", 2), (k + "embedding_length", "u32", 32),
        (k + "attention.head_count", "array", ("u32", [0, 4])), (k + "attention.head_count_kv", "array", ("i32", [0, 2])),
        (k + "expert_count", "u32", 2), (k + "expert_used_count", "u32", 2),
        (k + "expert_feed_forward_length", "u32", 32), (k + "expert_shared_feed_forward_length", "u32", 64),
    ]
    tensors = [Tensor("token_embd.weight", "F16", 8, 32)]
    tensors += [Tensor("blk.0.attn_qkv.weight", "Q8_0", 64, 32), Tensor("blk.0.ssm_a", "F32", 2), Tensor("blk.0.ssm_conv1d.weight", "F32", 64, 4)]
    tensors += [Tensor("blk.1.attn_q.weight", "Q8_0", 64, 32), Tensor("blk.1.attn_k.weight", "Q8_0", 16, 32)]
    for n in range(2):
        tensors += [Tensor("blk.%d.ffn_%s_exps.weight" % (n, x), "Q4_1", 2, 32, 32) for x in ("gate", "up", "down")]
    return metadata, tensors


def tokenizer(kind, rule, *more):
    """What GGUF has of a tokenizer.json: 1 is a token of the vocabulary, 3 a special one, 4 another
    added one, 5 fills a gap."""
    source = json.loads((HERE / "../../../tokenizer/testdata" / kind / "tokenizer.json").read_text(encoding="utf-8"))
    by_id = {n: (token, 1) for token, n in source["model"]["vocab"].items()}
    by_id.update({a["id"]: (a["content"], 3 if a["special"] else 4) for a in source["added_tokens"]})
    every = [by_id.get(n, ("[PAD%d]" % n, 5)) for n in range(max(by_id) + 2)]
    return [
        ("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.pre", "string", rule),
        ("tokenizer.ggml.tokens", "array", ("string", [token for token, _ in every])),
        ("tokenizer.ggml.token_type", "array", ("i32", [t for _, t in every])),
        ("tokenizer.ggml.merges", "array", ("string", [" ".join(m) for m in source["model"]["merges"]])),
    ] + list(more)


def main():
    tensors = [Tensor(kind.lower() + ".weight", kind, 2, 256) for kind in TYPES]
    tensors.append(Tensor("axes", "F32", 2, 3, 5))
    write("types.gguf", EVERY, tensors)
    (HERE / "types.f32").write_bytes(b"".join(struct.pack("<%dI" % len(t.bits), *t.bits) for t in tensors))
    write("big-endian.gguf", EVERY, [], order=">")

    metadata, tensors = moe()
    write("moe-v2.gguf", metadata, tensors, version=2)
    parts = [[], tensors[:9], tensors[9:]]
    for n, part in enumerate(parts):
        split = [("split.no", "u16", n), ("split.count", "u16", 3), ("split.tensors.count", "i32", len(tensors))]
        write("moe-%05d-of-00003.gguf" % (n + 1), (metadata if n == 0 else metadata[:3]) + split, part)
    ends = [("tokenizer.ggml.bos_token_id", "u32", 991), ("tokenizer.ggml.eos_token_id", "u32", 992),
            ("tokenizer.ggml.add_bos_token", "bool", True)]
    write("tokenizer-deepseek.gguf", tokenizer("deepseek", "deepseek-v3", *ends), [])
    write("tokenizer-qwen.gguf", tokenizer("qwen", "qwen2"), [])
    write("tokenizer-qwen35.gguf", tokenizer("qwen35", "qwen35"), [])
    write("deepseek.gguf", *deepseek())
    write("qwen3next.gguf", *qwen3next())


if __name__ == "__main__":
    main()
