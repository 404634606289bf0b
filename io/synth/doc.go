// Package synth writes packed models of real shapes with random weights and known behaviour: greedy
// decoding emits a chain of tokens that the generator chose, and every layer's router picks experts
// by a chosen law. Such a model checks an engine at full size, shows realistic routing and measures
// speed, without a download.
//
// # How it works
//
// The first channels of the hidden state are a wire that bypasses all layers. The embedding writes
// a code of the token and a code of its topic there, as values of equal magnitude; no output
// projection writes there. Routers read only the wire, so the experts of a token are a function of
// the token alone. The head reads the token's code and points to the token that follows it in the
// chain. All other channels hold ordinary random numbers for attention and experts to work on.
//
//	channels   0..63   ±1 code of the token
//	channels  64..71   +1: popularity of an expert, whatever the token
//	channels  72..103  ±1 code of the topic
//	channels 128..135  +1: a different small number for every expert of a layer, which breaks ties
//	channels 192..255  ballast, in models with sigmoid scores alone
//
// Router weights on the wire are small multiples of one step, and the numbers that break ties add
// up to less than one step. So different sums of a router differ by far more than rounding can
// change them. Under a softmax only their order counts, which a norm's factor does not change.
// Sigmoids with a correction bias and groups depend on the values: there the ballast, huge and the
// same for every token, alone decides the norms' factor, and the norms' weights cancel it.
//
// # What it owns
//
// It owns the laws ([Model.Chain], [Model.Routing], [Simulation]), the published shapes ([Named])
// and the writing of files ([Write]). io/weights and io/expertfile own the meaning of the files;
// the command compares an engine with the laws.
package synth
