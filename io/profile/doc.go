// Package profile keeps how often each routed expert of a model was used, in a small file for each
// model, so that an engine that opens with empty slots knows which experts to read first and which
// to keep. The file is a hint: results do not depend on it, and one that is missing, damaged or of
// another model is as good as none.
//
// What to do with the counts is up to the caller. docs/formats.md has the file's layout.
package profile
