// Package combine is the stage that ends waves. It owns the ring: the waves that are submitted to
// the device and not retired. Waves of urgent steps retire in order of submission, and so do those
// of others, whatever the order in which the device reports their tickets; of a device of several
// parts (gpu.Split) each has orders of its own, and a step's waves are in order. When a wave
// retires its slots go home to expert-IO, and after a layer's last wave the layer is retired.
//
// To add a message, add a case to Core.Step; package stages has the other steps.
package combine
