// Package eval feeds given token ids to an engine and says what came of it: the loss of windows of
// a text (Loss), logits with hidden states and routing as tensors (Logits), and how an engine
// differs from the known behaviour of a synthetic model (Chain). It also reads ids from JSON.
//
// Each function makes a sequence of its own and closes it. A Span begins a trace for each window
// and each prompt. Files and text for people are for the commands.
package eval
