package frame

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"time"
	"unsafe"
)

// An Ask is: layer, experts, rows, 1 if it is urgent, epoch (4 bytes each); the caller's trace (16
// bytes), span (8), flags (1); how many numbers of a row share a scale, as a power of two, 0 where
// rows are not rounded (1); 1 if sums are asked for (1), and 0; of each expert its number and how
// many rows it has (4 bytes each); the rows of the first expert, then those of the next … (2 bytes
// each); zeros up to 4 bytes; if sums are asked for, what multiplies each of these rows' outputs (4
// bytes each); the rows' values (codes.go).
const (
	askTrace      = 20 // where the caller's span is
	askFixed      = askTrace + 28
	askUseBytes   = 8
	askRowBytes   = 2
	askScaleBytes = 4
	mostRows      = 1 << 16
)

// Question is an Ask: experts of one layer, and the rows that each is applied to.
type Question struct {
	Layer  int
	Urgent bool   // of a step that decodes
	Epoch  uint32 // of the placement that the step goes by
	Trace  Trace
	Uses   []Use
	Inputs []float32 // [rows, hidden]
	// Group is how many numbers of a row the device rounds together. What is read is rounded to the
	// same codes as what was sent then. 0: Inputs go out as they are.
	Group int
	// Scales ask for sums: each row's outputs, of all experts that it has here, are multiplied by
	// these numbers, in the order of Uses and their Rows, and added up in that order. Not larger
	// than 1 in magnitude. nil: each output is wanted by itself.
	Scales []float32
}

// Trace is a caller's span, as W3C trace context has it. Zero means that it is not recorded.
type Trace struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
}

// String returns the span as a traceparent header has it.
func (t *Trace) String() string { return fmt.Sprintf("00-%x-%x-%02x", t.TraceID, t.SpanID, t.Flags) }

// Use is an expert of a Question.
type Use struct {
	Expert int
	Rows   []int32 // of Inputs, ascending
}

// Sum sets sums, [rows of Inputs, hidden], to what is asked for with Scales. outputs are those of
// each expert for its rows.
func (q *Question) Sum(sums []float32, hidden int, outputs [][]float32) {
	clear(sums)
	pick := 0
	for i := range q.Uses {
		for k, row := range q.Uses[i].Rows {
			to := sums[int(row)*hidden:][:hidden]
			for c, v := range outputs[i][k*hidden:][:hidden] {
				to[c] += float32(q.Scales[pick] * v) // rounded: no processor may fuse it with the sum
			}
			pick++
		}
	}
}

// Picks returns how many rows all experts have together.
func (q *Question) Picks() (n int) {
	for i := range q.Uses {
		n += len(q.Uses[i].Rows)
	}
	return n
}

// AppendAsk appends an Ask, which must be within the limits of the shape.
func AppendAsk(dst []byte, id uint64, hidden int, q *Question) []byte {
	from, urgent, sums := len(dst), 0, byte(0)
	if q.Urgent {
		urgent = 1
	}
	if len(q.Scales) > 0 {
		sums = 1
	}
	dst = begin(dst, Ask, id)
	for _, n := range []int{q.Layer, len(q.Uses), len(q.Inputs) / hidden, urgent, int(q.Epoch)} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	dst = append(append(dst, q.Trace.TraceID[:]...), q.Trace.SpanID[:]...)
	power := byte(0)
	if q.Group > 0 {
		power = byte(bits.TrailingZeros(uint(q.Group)))
	}
	dst = append(dst, q.Trace.Flags, power, sums, 0)
	for i := range q.Uses {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(q.Uses[i].Expert))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(q.Uses[i].Rows)))
	}
	for i := range q.Uses {
		for _, r := range q.Uses[i].Rows {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(r))
		}
	}
	dst = append(pad(dst, from), bytesOf(q.Scales)...)
	return end(appendRows(dst, q.Inputs, q.Group), from)
}

// Question reads an Ask. What it returns has memory of its own.
func (f *Frame) Question(s Shape) (*Question, error) {
	if f.Kind != Ask {
		return nil, ErrKind
	}
	b := f.Body
	bad := func(format string, args ...any) (*Question, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrContent}, args...)...)
	}
	if len(b) < askFixed {
		return bad("an ask of %d bytes", len(b))
	}
	word := func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
	layer, uses, rows, urgent := word(0), word(4), word(8), word(12)
	if layer >= s.Layers || uses < 1 || uses > s.Experts || rows < 1 || rows > mostRows || urgent > 1 || len(b) < askFixed+uses*askUseBytes {
		return bad("an ask for %d experts of layer %d and %d rows", uses, layer, rows)
	}
	q := &Question{Layer: layer, Urgent: urgent == 1, Epoch: uint32(word(16)), Uses: make([]Use, uses)}
	t := b[askTrace:askFixed]
	copy(q.Trace.TraceID[:], t)
	copy(q.Trace.SpanID[:], t[16:])
	sums := int(t[26])
	if q.Trace.Flags = t[24]; sums > 1 || t[27] != 0 {
		return bad("bytes after a span that are %d and %d", sums, t[27])
	}
	if t[25] > 0 {
		if q.Group = 1 << min(t[25], 31); q.Group < leastGroup || q.Group > mostGroup || s.Hidden%q.Group != 0 {
			return bad("groups of %d numbers", q.Group)
		}
	}
	picks := 0
	for i := range q.Uses {
		u, n := &q.Uses[i], word(askFixed+i*askUseBytes+4)
		u.Expert = word(askFixed + i*askUseBytes)
		if u.Expert >= s.Experts || i > 0 && u.Expert <= q.Uses[i-1].Expert || n < 1 || n > rows {
			return bad("expert %d with %d of %d rows", u.Expert, n, rows)
		}
		picks += n
	}
	at := askFixed + uses*askUseBytes
	scales := (at + picks*askRowBytes + 3) &^ 3
	values := scales + 4*picks*sums
	if picks > s.AskPicks() || len(b) != values+rows*RowBytes(s.Hidden, q.Group) {
		return bad("%d picks of %d rows in %d bytes", picks, rows, len(b))
	}
	all := make([]int32, 0, picks)
	for i := range q.Uses {
		u, n := &q.Uses[i], word(askFixed+i*askUseBytes+4)
		for j := range n {
			r := int32(binary.LittleEndian.Uint16(b[at:]))
			if at += askRowBytes; int(r) >= rows || j > 0 && r <= all[len(all)-1] {
				return bad("expert %d has row %d of %d", u.Expert, r, rows)
			}
			all = append(all, r)
		}
		u.Rows = all[len(all)-n : len(all) : len(all)]
	}
	if sums == 1 {
		q.Scales = slices.Clone(floatsOf(b[scales:values]))
		for _, f := range q.Scales {
			if !(f >= -1 && f <= 1) {
				return bad("an output is multiplied by %v", f)
			}
		}
	}
	q.Inputs = make([]float32, rows*s.Hidden)
	if err := readRows(q.Inputs, b[values:], q.Group); err != nil {
		return nil, err
	}
	return q, nil
}

// An Answer is: how many experts (4 bytes), 4 bytes of 0, three durations in nanoseconds (8 bytes
// each); the experts, as indices into those of the ask (2 bytes each); zeros up to 4 bytes; the
// outputs, or, where sums were asked for, of all experts the sums.
const (
	answerFixed    = 32
	answerUseBytes = 2
)

// Spent is where the time of an answer went. Hosts send durations, since their clocks are not ours.
type Spent struct {
	Waited, Read, Computed time.Duration // for its turn; for the disk; on the device
}

// Reply is an Answer: the outputs of some experts of an ask, or the sums of all.
type Reply struct {
	Spent
	Uses []int32 // indices into those of the ask, ascending
	// [rows of the first, rows of the next …, hidden]; of sums [rows of the ask's Inputs, hidden]
	Rows []float32
}

// MakeAnswer makes an Answer for some of an ask's experts in memory that it may use, and returns it
// with where its n output numbers belong. Spend sets what it says of time.
func MakeAnswer(memory []byte, id uint64, uses []int32, n int) (answer []byte, rows []float32) {
	dst := begin(memory[:0], Answer, id)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(uses)))
	dst = append(dst, make([]byte, answerFixed-8)...)
	for _, u := range uses {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(u))
	}
	dst = pad(dst, 0)
	values := len(dst)
	dst = slices.Grow(dst, 4*n)[:values+4*n]
	return end(dst, 0), floatsOf(dst[values:])
}

// Spend says in an Answer where its time went.
func Spend(answer []byte, s Spent) {
	for i, d := range []time.Duration{s.Waited, s.Read, s.Computed} {
		binary.LittleEndian.PutUint64(answer[headerBytes+8+8*i:], uint64(max(d, 0)))
	}
}

// Reply reads an Answer to an ask whose experts have so many rows each. Its Rows are the frame's.
func (f *Frame) Reply(hidden int, rows []int) (*Reply, error) {
	return f.reply(hidden, len(rows), func(uses []int32) (n int) {
		for _, u := range uses {
			n += rows[u]
		}
		return n
	})
}

// Sums is Reply for an ask for sums of so many experts and rows: all are answered at once.
func (f *Frame) Sums(hidden, experts, rows int) (*Reply, error) {
	r, err := f.reply(hidden, experts, func([]int32) int { return rows })
	if err == nil && len(r.Uses) != experts {
		return nil, fmt.Errorf("%w: sums of %d experts of %d", ErrContent, len(r.Uses), experts)
	}
	return r, err
}

// reply reads an Answer of some of so many experts, with as many rows as rowsOf says.
func (f *Frame) reply(hidden, experts int, rowsOf func(uses []int32) int) (*Reply, error) {
	if f.Kind != Answer {
		return nil, ErrKind
	}
	b := f.Body
	if len(b) < answerFixed {
		return nil, fmt.Errorf("%w: an answer of %d bytes", ErrContent, len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	if n < 1 || n > uint64(experts) || len(b) < answerFixed+int(n)*answerUseBytes {
		return nil, fmt.Errorf("%w: an answer for %d experts of %d", ErrContent, n, experts)
	}
	r := &Reply{Uses: make([]int32, n)}
	for i, d := range []*time.Duration{&r.Waited, &r.Read, &r.Computed} {
		*d = time.Duration(min(binary.LittleEndian.Uint64(b[8+8*i:]), uint64(time.Hour)))
	}
	for i := range r.Uses {
		u := int32(binary.LittleEndian.Uint16(b[answerFixed+i*answerUseBytes:]))
		if int(u) >= experts || i > 0 && u <= r.Uses[i-1] {
			return nil, fmt.Errorf("%w: an answer for expert %d of %d", ErrContent, u, experts)
		}
		r.Uses[i] = u
	}
	values := (answerFixed + len(r.Uses)*answerUseBytes + 3) &^ 3
	if want := values + 4*rowsOf(r.Uses)*hidden; len(b) != want {
		return nil, fmt.Errorf("%w: an answer of %d bytes, want %d", ErrContent, len(b), want)
	}
	r.Rows = floatsOf(b[values:])
	return r, nil
}

// pad appends zeros until what follows the header at from is a multiple of 4.
func pad(dst []byte, from int) []byte {
	for (len(dst)-from-headerBytes)%4 != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// bytesOf returns the memory of numbers.
func bytesOf(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}

// floatsOf returns memory as numbers. It must lie as they do, which it does a multiple of 4 bytes
// from the begin of what was allocated.
func floatsOf(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
