// Package weights reads model_weights.json and model_weights.bin of a packed model directory: all
// tensors but the routed experts, as one flat file and a manifest that names them. Open checks
// everything that the manifest claims. Matrices and vectors are then found by name, with the sizes
// that the architecture needs. The package also knows where packed directories of this project, of
// flash-moe and of moeflux say what their model is (ReadConfig).
package weights
