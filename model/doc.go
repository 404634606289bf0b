// Package model says what a checkpoint is: its configuration under the names that config.json uses,
// the kind of each layer, the sizes that follow from them, and the layout of one expert's record in
// the packed files. It reads bytes it is given and opens no file.
//
// A family of models is a file here and a line in the table of family.go: what config.json calls
// it, how that is read, what its checkpoints call their tensors, and the form of its tool calls.
// Everything else goes by the Config that comes of it, and knows no family by name. A new one whose
// mechanisms are there needs, beside that file, a row in internal/testmodel, which says again what
// its checkpoints look like so that random ones are tried, a reference that another implementation
// computed in internal/fixtures, and a row in docs/models.md. What is not there yet is in
// missing.go.
package model
