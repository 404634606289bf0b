// Package netdelay is a network between two programs of one machine that takes a while: a relay of
// TCP connections that hands on each byte a fixed time after it came, and no more bytes a second
// than a link has. It needs no rights, unlike the kernel's own.
//
//	proxy.go  Proxy: listens, and relays both ways
//	pipe.go   one direction of a connection: when what came may go on
//	sleep.go  waiting for a moment, to some microseconds
//
// A timer of Go's runtime may be a millisecond late on an idle machine, which is more than a
// network takes. So each direction has a thread of its own that sleeps in the kernel. What the
// relay adds by itself is measured by RoundTrip, with a Proxy whose Delay is 0.
package netdelay
