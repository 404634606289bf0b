// Package model says what a checkpoint is: its configuration under the names that config.json uses,
// the kind of each layer, the sizes that follow from them, and the layout of one expert's record in
// the packed files. It reads bytes it is given and opens no file.
package model
