// Package weights reads model_weights.json and model_weights.bin of a packed model directory: all
// tensors but the routed experts, as one flat file and a manifest that names them. Everything the
// manifest claims is checked at Open; matrices and vectors are then found by name, with the sizes
// that the architecture wants. The package also knows where a packed directory, be it of this
// project, of flash-moe or of moeflux, says what its model is (ReadConfig).
package weights
