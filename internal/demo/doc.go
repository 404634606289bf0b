// Package demo embeds the demo model: a tiny qwen3_5_moe text model, really trained, which writes
// text that looks like Go. It is what the program runs without a model of the user's, and what
// tests run that need a router with a mind of its own. Facts about it are in files/README.md, its
// origin and licence in files/NOTICE.
//
// The package owns the checkpoint, its packed copy in a cache folder, and what another
// implementation computed from the same weights (Reference).
package demo
