package gputest

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// guard is a NaN as float32 and as two bf16. poison is another one.
const (
	guard  = 0x7fc17fc1
	poison = 0x7fe2dead
)

// guardBytes lie before and after each operand, about; the exact number leaves the operand aligned
// no better than it must be.
const guardBytes = 256

// setup is one case: operands in device memory and the commands on them.
type setup struct {
	t        testing.TB
	d        gpu.Device
	rng      *rand.Rand
	cmds     gpu.Commands
	operands []*operand
	rounds   Rounds // by matrices of which formats the device multiplies rounded inputs; nil: of none
	queries  bool   // the device rounds queries where keys are in 8 bits
	aligned  bool   // operands begin where vectors can be loaded
	// Only what the device writes counts, and not what it should: references are not computed.
	unchecked bool
}

// operand is memory between guards.
type operand struct {
	name          string
	buf           gpu.Buffer
	at, size      int    // bytes
	before, after []byte // the whole buffer
	written       func(i int) bool
	want, limit   []float64 // of the float32, where written
	wantBytes     []byte    // of all of it, or nil
	ours          bool      // the device writes what it likes
}

// newSetup begins a case. Its random numbers depend on the name alone.
func newSetup(t testing.TB, d gpu.Device, name string) *setup {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &setup{t: t, d: d, rng: rand.New(rand.NewPCG(h.Sum64(), 1))}
}

// place puts data between guards, at a multiple of align and not of twice that, or at one of
// guardBytes where operands are aligned.
func (s *setup) place(name string, data []byte, align int) *operand {
	s.t.Helper()
	if s.aligned {
		align = 0
	}
	o := &operand{name: name, at: guardBytes + align, size: len(data)}
	o.before = make([]byte, (o.at+len(data)+guardBytes+3)&^3)
	for i := 0; i < len(o.before); i += 4 {
		binary.LittleEndian.PutUint32(o.before[i:], guard)
	}
	copy(o.before[o.at:], data)
	o.after = make([]byte, len(o.before))
	buf, err := s.d.NewBuffer(len(o.before))
	if err != nil {
		s.t.Fatalf("%s: NewBuffer(%d): %v", name, len(o.before), err)
	}
	s.t.Cleanup(buf.Release)
	o.buf = buf
	s.operands = append(s.operands, o)
	return o
}

// input places numbers that the operation only reads.
func (s *setup) input(name string, values []float32) *operand {
	s.t.Helper()
	return s.place(name, gpu.FloatBytes(values), 4)
}

// inout places numbers that the operation changes.
func (s *setup) inout(name string, values []float32) *operand {
	s.t.Helper()
	o := s.place(name, gpu.FloatBytes(values), 4)
	o.written = func(int) bool { return true }
	return o
}

// output places n poisoned float32 that the operation writes.
func (s *setup) output(name string, n int) *operand {
	s.t.Helper()
	return s.inout(name, poisoned(n))
}

func poisoned(n int) []float32 {
	p := make([]float32, n)
	for i := range p {
		p[i] = math.Float32frombits(poison)
	}
	return p
}

// where says which float32 the operation writes; the others must stay as they were.
func (o *operand) where(written func(i int) bool) *operand {
	o.written = written
	return o
}

// expect says what must be there afterwards, and how far off it may be.
func (o *operand) expect(want, limit []float64) {
	o.want, o.limit = want, limit
}

// expectExactly is expect for results without rounding.
func (o *operand) expectExactly(want []float32) {
	o.want, o.limit = make([]float64, len(want)), make([]float64, len(want))
	for i, v := range want {
		o.want[i] = float64(v)
	}
}

// expectBytes says what must be there afterwards, to the bit.
func (o *operand) expectBytes(want []byte) {
	o.written, o.wantBytes = func(int) bool { return true }, want
}

func (o *operand) view() gpu.View { return gpu.View{Buf: o.buf, Offset: o.at} }

// floats returns the operand's numbers after run.
func (o *operand) floats() []float32 { return decode(o.after[o.at : o.at+o.size]) }

func decode(b []byte) []float32 {
	f := make([]float32, len(b)/4)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}

// pinned returns n bytes of host memory that copies reach directly, where the device has such.
func (s *setup) pinned(n int) []byte {
	d, ok := s.d.(gpu.Discrete)
	if !ok {
		return make([]byte, n)
	}
	buf, err := d.NewPinned(n)
	if err != nil {
		s.t.Fatalf("NewPinned(%d): %v", n, err)
	}
	s.t.Cleanup(buf.Release)
	return buf.Bytes()
}

// run uploads the operands, runs the commands, fetches the operands and checks them.
func (s *setup) run() {
	s.t.Helper()
	var all, down gpu.Commands
	for _, o := range s.operands {
		gpu.Encode(&all, gpu.Upload{Dst: gpu.View{Buf: o.buf}, Src: o.before})
		gpu.Encode(&down, gpu.Download{Src: gpu.View{Buf: o.buf}, Dst: o.after})
	}
	submit(s.t, s.d, &all, &s.cmds, &down)
	for _, o := range s.operands {
		if s.unchecked {
			o.want, o.limit = nil, nil
		}
		o.check(s.t)
	}
}

func (o *operand) check(t testing.TB) {
	t.Helper()
	end := o.at + o.size
	if !bytes.Equal(o.before[:o.at], o.after[:o.at]) || !bytes.Equal(o.before[end:], o.after[end:]) {
		t.Errorf("%s: memory before or after it was written", o.name)
	}
	if o.ours {
		return
	}
	if o.written == nil {
		if !bytes.Equal(o.before[o.at:end], o.after[o.at:end]) {
			t.Errorf("%s: the input was changed", o.name)
		}
		return
	}
	for i, w := range o.wantBytes {
		if got := o.after[o.at+i]; got != w {
			t.Errorf("%s: byte %d is %#x, want %#x", o.name, i, got, w)
			return
		}
	}
	before, after := decode(o.before[o.at:end]), o.floats()
	var got []float32
	var want, limit []float64
	for i := range after {
		if !o.written(i) {
			if math.Float32bits(before[i]) != math.Float32bits(after[i]) {
				t.Errorf("%s[%d] is %v, must stay %v", o.name, i, after[i], before[i])
				return
			}
			continue
		}
		got = append(got, after[i])
		if o.want != nil {
			want, limit = append(want, o.want[i]), append(limit, o.limit[i])
		}
	}
	if o.want == nil {
		return
	}
	if err := numcmp.Scaled(got, want, limit, 1); err != nil {
		t.Errorf("%s: %v", o.name, err)
	}
}

// submit runs commands in order on a queue of their own and waits.
func submit(t testing.TB, d gpu.Device, all ...*gpu.Commands) {
	t.Helper()
	q, err := d.NewQueue()
	if err != nil {
		t.Fatalf("NewQueue: %v", err)
	}
	done := make(chan error, len(all))
	for _, c := range all {
		ticket, err := q.Submit(c)
		if err != nil {
			t.Errorf("Submit: %v", err)
			break
		}
		ticket.OnDone(func(err error) { done <- err })
	}
	if err := q.Close(); err != nil {
		t.Errorf("closing the queue: %v", err)
	}
	close(done)
	for err := range done {
		if err != nil {
			t.Errorf("the work failed: %v", err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// normal returns n numbers around 0, most between -1 and 1.
func (s *setup) normal(n int) []float32 {
	f := make([]float32, n)
	for i := range f {
		f[i] = float32(s.rng.NormFloat64() / 2)
	}
	return f
}

// extreme returns n numbers of every size, from those whose exponential overflows down to 0.
func (s *setup) extreme(n int) []float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 20, -20, 88, -88, 104, -104, 1e4, -1e4, 1e-20, -1e-20}
	f := s.normal(n)
	for i := range f {
		if i < len(special) {
			f[i] = special[i]
		} else {
			f[i] *= 8
		}
	}
	return f
}

// fill returns n float64 of one value.
func fill(n int, v float64) []float64 {
	f := make([]float64, n)
	for i := range f {
		f[i] = v
	}
	return f
}
