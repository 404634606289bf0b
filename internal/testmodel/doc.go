// Package testmodel writes tiny checkpoints with random weights in the form in which real ones are
// published: config.json and one model.safetensors in bf16, with each family's names and layouts. A
// Spec describes the model; RandomSpec draws a legal one. The same Spec and seed give the same
// bytes.
//
// Weights are drawn so that activations stay of order one, routers choose clearly, attention is
// neither flat nor fixed on one position, and decays of linear attention cover short and long
// memories.
package testmodel
