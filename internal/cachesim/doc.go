// Package cachesim computes the misses of a cache of whole experts from the experts that were used:
// of the best possible cache, which knows the future, and of one that keeps the most recently used.
// It works on numbers and knows nothing about the engine.
package cachesim
