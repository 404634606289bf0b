// Package testmodel writes tiny checkpoints with random weights, as they are published: config.json
// and one model.safetensors in bf16, under the names and in the forms of each family. A Spec says
// what the model is made of; RandomSpec draws one that is legal. The same Spec and seed give the
// same bytes.
//
// Weights are drawn so that activations stay of order one, routers choose clearly, attention is
// neither flat nor fixed on one position, and decays of linear attention cover short and long
// memories.
package testmodel
