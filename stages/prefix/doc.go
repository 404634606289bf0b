// Package prefix finds texts by how they begin: which of those that are known holds the longest
// beginning of another one. It compares tokens and knows nothing of what they are for. Package
// sequencer is its one user.
//
// Its nouns:
//
//   - Tree: a radix tree over tokens. A path from the root spells the beginning of a text.
//   - Holder: a text in the tree, with a value that says whose it is. Several may have equal texts.
//   - node: a run of tokens that the texts below it have in common. It counts the holders whose
//     texts pass through it or end there, and goes with the last one.
//
// A node has no tokens of its own: it points to a holder below it, and to where in that holder's
// text its tokens are. So the tree keeps no text in memory that nobody holds. Without holders of
// its own a node has at least two children, so there are fewer than two nodes for each holder.
//
// Texts grow at their ends all the time, a token each step. A text that ends in a leaf of its own
// grows by one number there, so live texts can be in the tree as a whole, up to date after every
// step. Texts that are put in only up to a border would need a second comparison for the rest, and
// would make what is found an estimate. A tree that is brought up to date only when somebody asks
// would have to find out what became of each text since.
//
// What is found is exact, and in no particular order among those that have equally much in common:
// the caller knows whom it prefers.
package prefix
