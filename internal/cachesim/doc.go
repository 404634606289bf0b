// Package cachesim tells what a cache of whole experts would have missed, given which experts were
// used: the best cache that there could be, which knows the future, and one that keeps the most
// recently used. It is arithmetic on numbers; what the engine does it does not know.
package cachesim
