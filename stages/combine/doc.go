// Package combine is the stage that ends waves. It owns the deferred ring: waves that are with the
// device and not retired. Waves retire in the order of their submission, whatever the order in
// which their tickets are reported; then their slots go home and, after a layer's last wave, the
// layer is retired.
package combine
