// Package refmodel is the oracle: a forward pass in float64, one position after the other, written
// from the formulas of each architecture and from nothing else. It is slow, keeps every weight
// widened in memory, and shares only the reading of packed files with the engine. It fuses, folds
// and reorders nothing for speed, and caches nothing beyond what the definition of a position
// needs. Where a formula can be written in two ways, it takes the defining one: keys and values of
// latent attention are unfolded, and the state of the delta rule is updated row by row.
//
// Norm weights are taken as the pack holds them, with the one of 1+w already added.
package refmodel
