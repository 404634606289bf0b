// Package router is the stage that chooses experts. It turns a layer's raw scores into picks,
// weights and a plan of waves, and foretells picks of the next layers: those of the row before in
// the same layer, those that the layer's router gives for the router input one or two layers
// before, or by both; each with a chance, which is what experience says of such guesses. It owns
// the predictions per sequence and layer.
package router
