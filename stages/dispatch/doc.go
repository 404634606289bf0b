// Package dispatch is the stage that knows which kernels run in which order on which buffers. It
// owns the device queue, the scratch buffers of each lane, and the memory of every state: pages of
// keys and values, and recurrent states. Who shares which page is for the sequencer to say.
//
// It submits a streamed layer in two halves, and waits for neither: the mixer and the choice of
// experts; then the routed experts, wave by wave. Between the two the device has work that needs no
// routed expert: the routers of the next layers, for predictions, and the shared expert. The last
// wave also sums the picks, adds the residual and runs the next layer's input norm. In a resident
// engine a layer is one submission, or several layers are.
//
// Decode steps are urgent (stages.Batch): the device may run them before, and amid, prompt steps,
// which have lanes of their own. The queue runs each of the two in order, so when a ticket is
// finished everything submitted before it in its order is finished too. By that rule recorded
// commands are used again. Copies of states are urgent too: no step that is under way writes to
// what they read or to what they make, and every step that comes later sees them.
//
// A device may be several (gpu.Split). Dispatch then has a part for each, with the layers that this
// device computes, and what of states and scratch memory lies there. Where a part's layers begin,
// the rows move to it. A wave may also bring answers of expert hosts, which are uploaded to where
// the device's own would be.
//
// Where a resident device does not hold all experts, near.go replaces entries of its tables, and
// transit.go has the far experts of large steps copied a layer ahead.
//
// To add a message, add a case to Core.Step; package stages has the other steps.
package dispatch
