// Package fingerprint tells packed models apart, wherever their directories are: two directories
// have the same fingerprint if a state of one model continues to the same bits in the other.
//
// It goes over the files that a model computes with: the configuration, the weights and their
// manifest, the routed experts with their layout. Files that only describe them count by their
// content. Weights are not read; their checksums stand for them, where the model has any. Nothing
// else in the directory counts, neither notes nor tokenizer: a state holds the ids of tokens.
//
// States and profiles of earlier versions carry the fingerprint of a former rule, by which every
// file below the directory counted. Former computes it, and Current tells which rule a fingerprint
// follows.
package fingerprint
