// Package refmodel is the oracle: a forward pass in float64, one position at a time, written from
// the formulas of each architecture and nothing else. It is slow, keeps every weight in memory as
// float64, and shares only the reading of packed files with the engine. It fuses, folds and
// reorders nothing for speed, and caches nothing beyond what the definition of a position needs.
// Where a formula can be written in two ways it uses the defining one: keys and values of latent
// attention are unfolded, and the state of the delta rule is updated row by row.
//
// Norm weights are used as the pack holds them, where the 1 of 1+w has already been added.
package refmodel
