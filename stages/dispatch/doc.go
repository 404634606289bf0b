// Package dispatch is the stage that knows which kernels run in which order into which buffers. It
// owns the device queue, the scratch buffers of each lane, and the canonical key-value and
// recurrent state of every sequence and of every frozen state; who shares which page is the
// sequencer's to say.
//
// Per layer it submits twice without waiting: the mixer up to the router's scores (and, behind
// them, the shared expert, which the device computes while the routed ones are being found), then
// the routed experts wave by wave. The last wave also combines, adds the residual and runs the next
// layer's input norm.
//
// The queue runs in order, so everything submitted before a finished ticket is finished too;
// recorded commands are used again by that rule.
package dispatch
