// Package demo embeds the demo model: a tiny qwen3_5_moe text model that was really trained and
// writes text that looks like Go. The program runs it when the user names no model. Tests run it
// when they need a router with real preferences. files/README.md has facts about it, files/NOTICE
// its origin and licence.
//
// The package owns the checkpoint, its packed copy in a cache folder, and what another
// implementation computed from the same weights (Reference).
package demo
