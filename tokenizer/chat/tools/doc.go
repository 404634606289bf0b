// Package tools reads what a model says: its reasoning, its text, and the functions that it calls,
// while the text comes in.
//
// Models write calls in forms of their own, in the middle of their text. A Syntax names the form
// and the marks of the reasoning; Detect tells both from a model's chat template. A Parser takes
// the answer in pieces of any size and gives Events as soon as they are certain: the arguments of a
// call come as they are generated. Events do not depend on how the text was cut, and their Raw
// parts together are the text, to the byte: a call that is not well formed comes back as text, with
// a kind of its own. A Builder makes the assistant's message of events.
//
// The text must hold the marks. Some are special tokens, so an answer has to be decoded with these,
// without the token that ends the turn.
//
// The forms come from public descriptions: the model cards of Hermes 2 Pro and DeepSeek V3.1, the
// tool calling guides of Kimi K2 and MiniMax M2, OpenAI's guide to the harmony format, the parsers
// that Qwen publishes with Qwen3-Coder and vLLM has for Hy3, the guide to Hunyuan-A13B, and the
// instructions in the chat templates of Qwen3, DeepSeek V3 and GLM 4.5. testdata/README.md names
// them, with what was taken from each.
//
// The form of gpt-oss (harmony) frames the whole answer, not only calls: it has no marks of
// reasoning beside its own.
package tools
