package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

// ahead brings the keys or values of a block to the caches. Lines of whole rows are prefetched
// while products are computed; what is left of them afterwards is read in one go, which memory
// delivers fastest. Parts of rows are read in one go at once.
type ahead struct {
	lines aheadLines // of the run of rows under way

	v         *vectors
	kv        *gpu.KV
	at, width int  // first channel and how many
	whole     bool // width is all channels
	offset    int  // of the keys or values in a page
	p, end    int  // positions still to fetch
}

// aheadLines are cache lines to fetch. multiplyAhead advances next, which stays at last when there
// are no more.
type aheadLines struct{ next, last unsafe.Pointer }

// aheadBytes is how many bytes follow last: more than multiplyAhead takes in a step.
const aheadBytes = 128

// begin finishes what was under way and starts n positions from p on, width channels from channel
// at on, of the keys or values that begin at offset in a page and of which a row is kv.Dim long.
func (r *ahead) begin(v *vectors, kv *gpu.KV, at, width, offset, p, n int) {
	r.rest()
	*r = ahead{v: v, kv: kv, at: at, width: width, whole: width == kv.Dim && v.multiplyAhead != nil, offset: offset, p: p, end: p + n}
	if !r.whole {
		r.rest()
	}
}

// rest reads all that is left.
func (r *ahead) rest() {
	if l := &r.lines; l.next != nil {
		if n := uintptr(l.last) - uintptr(l.next) + aheadBytes; n > aheadBytes {
			r.v.touch(unsafe.Slice((*byte)(l.next), n), int(n), 0, 1)
		}
		*l = aheadLines{}
	}
	if n := r.end - r.p; n > 0 {
		r.v.bring(r.kv, r.offset, r.at, r.width, r.p, n)
		r.p = r.end
	}
}

// line prepares lines to fetch during a product, and reports whether there are any.
func (r *ahead) line() bool {
	if !r.whole {
		return false
	}
	for r.lines.next == r.lines.last && r.p < r.end {
		kv, row := r.kv, r.p%r.kv.PageRows
		n := min(r.end-r.p, kv.PageRows-row)
		part := bytesAt(kv.Pages.At(r.p/kv.PageRows).At(r.offset), kv.PartBytes())
		rowBytes := 4 * kv.Dim
		if kv.Format != gpu.KVF32 {
			rowBytes = kv.Dim
			r.v.touch(part[kv.ScalesAt()+4*row:], 4*n, 4*kv.PageRows, kv.Groups())
		}
		mem := part[row*rowBytes : (row+n)*rowBytes]
		r.p += n
		if len(mem) <= aheadBytes {
			r.v.touch(mem, len(mem), 0, 1)
			continue
		}
		r.lines = aheadLines{unsafe.Pointer(&mem[0]), unsafe.Pointer(&mem[len(mem)-aheadBytes])}
	}
	return r.lines.next != r.lines.last
}

// product is multiply. With few queries it also fetches what comes next.
func (a *queries) product(c, x, b []float32, cs, as, bs, rows, depth, cols int, sum bool) {
	if a.next != nil && a.next.line() {
		a.multiplyAhead(c, x, b, cs, as, bs, rows, depth, cols, sum, (*byte)(unsafe.Pointer(&a.next.lines)))
		return
	}
	a.multiply(c, x, b, cs, as, bs, rows, depth, cols, sum)
}
