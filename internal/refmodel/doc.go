// Package refmodel is the oracle: a forward pass in float64, one position after the other, written
// from the formulas of each architecture and from nothing else. It is slow, holds every weight
// widened in memory, and shares with the engine only the reading of packed files. Nothing in it is
// fused, folded, cached beyond what the definition of a position needs, or reordered for speed;
// where a formula can be written in two ways, it takes the defining one: keys and values of latent
// attention are unfolded, the state of the delta rule is updated step by step.
//
// Weights of norms are taken as the pack holds them, with the one of 1+w already added.
package refmodel
