// Package combine is the stage that ends waves. It owns the ring: the waves that are with the
// device and not retired. Waves retire in the order of their submission, in whatever order their
// tickets are reported. Then their slots go home and, after a layer's last wave, the layer is
// retired.
package combine
