// Package policy decides which expert leaves its slot when another needs the room. It works on
// numbers of layers, rows and experts, and knows nothing about slots, reads or messages: the caller
// tells an [Order] what the routers pick and which experts may leave, and asks which one should.
//
// Each use of an expert adds to its score, and uses lose weight as rows go by. The score, divided
// by its largest possible value, estimates the chance p that the next row of the layer picks the
// expert. Layers come in a fixed order, so the distance d to the layer's next turn is known, in
// passes through the model. The expert that is expected to wait longest, 1/p - 1 passes and d,
// leaves. The optimum would evict the expert whose next use is farthest away, and this estimates
// it. A prompt that uses every expert of every layer moves all estimates alike, weighted by how
// many of its rows picked each expert, so it does not drive out experts that are used often.
//
// How fast uses should age depends on the text and the model: some experts come and go with a
// subject, others are popular throughout. So the package keeps two estimates, one with a short
// memory and one with a long memory, and uses the one that predicted the latest picks better. Both
// tell little about the experts that nobody has used for long, half of all in many a cache, and a
// new subject needs some of these. So a third one, of the last thousand or so rows of whatever
// steps, says which are popular, and an expert's chance is at least a tenth of that.
//
// docs/experiments.md compares this policy with others, and with the optimum, which knows the
// future.
package policy
