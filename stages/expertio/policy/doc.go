// Package policy says which expert leaves its slot when another needs the room. It knows
// numbers of layers, rows and experts, and nothing of slots, reads or messages: what holds the
// experts tells an [Order] what the routers pick and which experts could leave, and asks it which
// should.
//
// An expert's uses count, and count less as rows go by, so that its score over what it could be is
// an estimate of the chance p that the next row of its layer picks it. Layers come in a fixed
// order, so the distance d to that layer's next turn is known too, in passes through the model. The
// expert that is expected to wait longest, 1/p - 1 passes and d, leaves: the optimum is to take the
// one whose next use lies farthest, and this is the estimate of it. A prompt that uses every expert
// of every layer moves all estimates alike, weighed by how many of its rows picked each expert, so
// it does not wash out what is wanted often.
//
// How fast uses should age depends on the text and the model: experts of a subject come and go with
// it, others are popular throughout. So two estimates are kept, one that forgets soon and one that
// remembers, and the one that predicted the latest picks better is used.
//
// docs/experiments.md compares it with other policies, and with the optimum, which knows the
// future.
package policy
