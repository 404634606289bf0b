// Package synth writes packed models of real shape with random weights whose behaviour is known
// beforehand: greedy decoding emits a chain of tokens laid down by the generator, and every layer's
// router picks experts by a law of one's choosing. Such a model checks an engine at full size,
// replays realistic routing and measures speed, without a download.
//
// # How it works
//
// The first channels of the hidden state are a wire past all layers. The embedding puts a code of
// the token and a code of the token's topic there, of values that have equal magnitude; no output
// projection writes there. Routers read only the wire, so which experts a token uses is a function
// of the token alone, and the head reads the token's code and points at the token that follows it
// in the chain. All other channels hold ordinary random numbers that attention and experts work on.
//
//	channels   0..63   ±1 code of the token
//	channels  64..71   +1: popularity of an expert, whatever the token
//	channels  72..103  ±1 code of the topic
//	channels 128..135  +1: a different small number for every expert of a layer, which breaks ties
//	channels 192..255  ballast, in models with sigmoid scores alone
//
// Router weights on the wire are small multiples of one step, and the numbers that break ties stay
// below one step together, so different sums of a router differ by far more than rounding can move
// them. Under a softmax only their order counts, which a norm's factor does not change. Sigmoids
// with a correction bias and groups need the very values: there the ballast, huge and the same for
// every token, decides the norms' factor alone, and the norms' weights take it out again.
//
// # What it owns
//
// The laws ([Model.Chain], [Model.Routing], [Simulation]), the published shapes ([Named]) and the
// writing of the files ([Write]). What the files mean is io/weights' and io/expertfile's; comparing
// an engine with the laws is the command's.
package synth
