// Package convert turns a checkpoint directory, in the Hugging Face layout (bf16, f16, f32, FP8,
// NVFP4, MXFP4, whole numbers of compressed-tensors, AWQ or GPTQ) or the quantised layout of the
// MLX community, into a packed model directory:
//
//	model_weights.bin, model_weights.json   all tensors but the routed experts (package io/weights)
//	packed_experts/layer_NN.bin, layout.json, records.crc32c   the routed experts (package io/expertfile)
//	config.json, generation_config.json, tokenizer files, chat template   as in the source
//	vocab.bin   the bytes of every token
//	checksums.json   size and SHA-256 of each of these
//
// The layout of a source follows from its tensors. Quantised matrices are repacked without loss,
// unless they are to have fewer bits: those that packs have as they are by a copy, others by a
// recipe. By default their rows are arranged in panels. Tensors keep their names in the checkpoint,
// with two exceptions: qwen3_next's interleaved projections become the four that qwen3_5_moe has,
// and minimax_m2's mixture of experts takes the names that all other families use. Per-head stacks
// become one matrix. A checkpoint of any size streams through a few buffers of some MiB. Everything
// is written to DST.partial, which is renamed to DST when it is complete. Until then an interrupted
// conversion can continue after its last finished file.
//
// The files of a checkpoint may also come one after another, from far away. Each is converted when
// it is there, block by block into place, and can be removed, so that the disk never holds both the
// checkpoint and the pack.
//
// A source may also be a GGUF file (package io/ggufmodel says what it stands for). Its config.json
// and tokenizer files are made from its metadata. Blocks of codes stay as they are.
//
// A source may also be packed already, by this package or another program. Then its files are
// written in the other layout, with no number changed, and compared on the way with its checksums
// of records and of files.
//
// The package also verifies a packed directory against its checksums.
package convert
