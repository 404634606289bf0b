// Package profile records how often each routed expert of a model was used, in a small file per
// model, so that an engine that opens with empty slots knows which experts to read first and which
// to keep. The file is a hint: results do not depend on it, and the engine runs without one that is
// missing, damaged or of another model.
//
// The caller decides what to do with the counts. docs/formats.md describes the file.
package profile
