// Package gputest is the conformance suite of devices. A back end's test calls Run with its device:
// every operation is compared with a float64 definition written from the operation's comment, in
// tolerances that tolerance.go holds with their reasons, and the promises of package gpu are
// checked: outputs are written whole and nothing else is, nothing outside an operand is read or
// written, rows do not depend on their company, and queues keep their order.
//
// Operands lie between guards of NaNs, outputs are poisoned with NaNs, and inputs must come back
// unchanged.
package gputest
