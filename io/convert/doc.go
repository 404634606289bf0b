// Package convert turns a checkpoint directory, in the Hugging Face layout (bf16, f16, f32,
// block-scaled fp8, int4 of compressed-tensors) or the quantised layout of the MLX community, into
// a packed model directory:
//
//	model_weights.bin, model_weights.json   all tensors but the routed experts (package io/weights)
//	packed_experts/layer_NN.bin, layout.json, records.crc32c   the routed experts (package io/expertfile)
//	config.json, generation_config.json, tokenizer files, chat template   as in the source
//	vocab.bin   the bytes of every token
//	checksums.json   size and SHA-256 of each of these
//
// The layout of a source follows from its tensors. Quantised matrices are repacked without loss,
// unless experts are to have fewer bits, but their rows are arranged in panels by default; fp8
// becomes bf16, or codes of what it stands for. Tensors keep the names that the checkpoint has for
// them, with two exceptions: qwen3_next's interleaved projections become the four that qwen3_5_moe
// has, row by row, and minimax_m2's mixture of experts takes the names of all others. Per-head
// stacks lie in the pack as one matrix. A checkpoint of any size streams through a few buffers of
// some MiB. Everything is written to DST.partial, which becomes DST in one rename when it is whole;
// until then an interrupted conversion goes on where its last finished file ends.
//
// A source may also be packed already, by this package or another program: then its files are
// written in the other layout, without a change of any number, and compared with its checksums, of
// records and of files, on the way.
//
// The package also verifies a packed directory against its checksums.
package convert
