// Package router is the stage that chooses experts. It turns a layer's raw scores into picks, weights and a plan of waves,
// and foretells the next picks: those of the row before in the same layer, or those that the next layer's router
// gives for this layer's router input. It owns the predictions per sequence and layer.
package router
