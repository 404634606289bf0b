// Package dump shows what happens inside the layers of a model, as tensors in files, and says where
// two such files begin to differ.
//
// A tensor is named P.layer.N.NAME: P is the text's name, NAME a stages.Quantity. Its first axis is
// the text's tokens, but for the states of the delta rule, of which there is one a chunk.
package dump
