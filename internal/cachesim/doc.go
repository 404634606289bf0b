// Package cachesim computes what a cache of whole experts would have missed, given which experts
// were used: the best possible cache, which knows the future, and one that keeps the most recently
// used. It is arithmetic on numbers and knows nothing of the engine.
package cachesim
