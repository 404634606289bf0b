//go:build !race && !noasm

package record

import "sync/atomic"

// publish stores how many records may be read, after the records themselves. It is a plain store:
// amd64 keeps the order of stores, so whoever loads the number sees the records. The store of
// sync/atomic waits until every earlier one has reached the cache, which for a record of memory
// that was written long ago takes some 50 ns, on the path of a token.
//
//go:noescape
func publish(n *atomic.Int64, v int64)
