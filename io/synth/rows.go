package synth

import (
	"encoding/binary"
	"math"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// The standard deviation of uniformly drawn codes of either width.
var (
	spread4 = math.Sqrt((16*16 - 1) / 12.0)
	spread8 = math.Sqrt((256*256 - 1) / 12.0)
)

// The gains of matrices: the root mean square of the output divided by that of the input.
const (
	innerGain = 1
	// writeGain keeps the hidden state near its initial magnitude over a hundred layers.
	writeGain = 1.0 / 16
	gateGain  = 0.25
	// headStep is the step of the head's weights on the wire. 7 steps stand for a bit.
	headStep = 0.25
	// headNoise, divided by the square root of the hidden size, is the deviation of its other
	// weights. The largest of some 10^5 sums of them stays far below the lead of the right token.
	headNoise = 0.4
)

// pair is the scale and the bias of a group, as BF16 bits.
type pair struct{ scale, bias uint16 }

// zeroAt returns the pair whose codes stand for (code - zero)·scale. Both numbers must be exact in
// BF16.
func zeroAt(scale, zero float64) pair {
	return pair{quant.F32ToBF16(float32(scale)), quant.F32ToBF16(float32(-scale * zero))}
}

// steps returns eight pairs for uniformly drawn 4-bit codes around zero, whose weights together
// have about the given deviation. Scales have four significant bits, so that 7.5 of them are exact
// too.
func steps(deviation float64) (out [8]pair) {
	scale := func(i int) float64 { return math.Ldexp(float64(8+i&7), i>>3) }
	first, near := 0, math.Inf(1)
	for i := -8 * 64; i < 8*64; i++ {
		sum := 0.0
		for j := range out {
			sum += scale(i+j) * scale(i+j)
		}
		if d := math.Abs(math.Log(spread4 * math.Sqrt(sum/8) / deviation)); d < near {
			first, near = i, d
		}
	}
	for j := range out {
		out[j] = zeroAt(scale(first+j), 7.5)
	}
	return out
}

// matrix computes the rows of one matrix, or of one of the three matrices of every expert of a
// layer.
type matrix struct {
	rows, cols    int
	bits          int
	codes, scales key
	pairs         [8]pair // drawn for each group
	lead          []pair  // of the first groups of every row, instead of drawn ones
	zero          int     // how many rows are zero, from the first on
	blank         bool    // codes are all at the middle, not random
	// edit, if not nil, sets the codes of the first channels.
	edit func(codes []byte, row int)
	// plain, if not nil, computes whole rows in BF16 instead.
	plain func(dst []byte, row int)
}

// codeRow fills dst with the codes of a row. block, the expert, tells matrices with the same key
// apart.
func (x *matrix) codeRow(dst []byte, block, row int) {
	switch {
	case x.plain != nil:
		x.plain(dst, row)
		return
	case x.blank:
		for i := range dst {
			dst[i] = 0x80
		}
	default:
		x.codes.sub(block*x.rows + row).fill(dst)
	}
	if x.edit != nil {
		x.edit(dst, row)
	}
}

// pairRow fills the scales or the biases of a row.
func (x *matrix) pairRow(dst []byte, block, row int, which quant.Part) {
	if row < x.zero {
		clear(dst)
		return
	}
	put := func(g int, p pair) {
		v := p.scale
		if which == quant.Biases {
			v = p.bias
		}
		binary.LittleEndian.PutUint16(dst[2*g:], v)
	}
	r := x.scales.sub(block*x.rows + row).stream()
	var word uint64
	for g := range len(dst) / 2 {
		if g%16 == 0 {
			word = r.next()
		}
		put(g, x.pairs[word&7])
		word >>= 4
	}
	for g, p := range x.lead {
		put(g, p)
	}
}

// set4 writes 4-bit codes from channel at on: 15 where the bit is 1, else 1. These are 7 above and
// 7 below 8.
func set4(codes []byte, at, n int, bits uint64) {
	for i := range n {
		v := byte(1)
		if bits>>i&1 == 1 {
			v = 15
		}
		put4(codes, at+i, v)
	}
}

func put4(codes []byte, channel int, v byte) {
	shift := 4 * (channel & 1)
	codes[channel/2] = codes[channel/2]&^(15<<shift) | v<<shift
}

// all4 sets the 4-bit codes of channels to 8, which is zero on the wire.
func all4(codes []byte, from, to int) {
	for i := from / 2; i < to/2; i++ {
		codes[i] = 0x88
	}
}

// matrix returns what computes a matrix's rows.
func (m *Model) matrix(s matrixSpec) *matrix {
	h, wire := float64(m.cfg.HiddenSize), wireChannels(m.cfg)
	x := &matrix{rows: s.rows, cols: s.cols, bits: s.bits, codes: m.key(s.name + ".weight"), scales: m.key(s.name + ".scales")}
	onWire := func(scale float64) {
		for range wire / groupSize {
			x.lead = append(x.lead, zeroAt(scale, 8))
		}
	}
	switch s.role {
	case inner:
		x.pairs = steps(innerGain / math.Sqrt(float64(s.cols)))
	case writes:
		x.pairs = steps(writeGain / math.Sqrt(float64(s.cols)))
		x.zero = wire
	case embedding:
		x.pairs = steps(wireValue)
		onWire(wireValue / 7)
		if wire > ballastAt {
			x.lead[ballastAt/groupSize] = zeroAt(ballastStep, 8)
		}
		x.edit = m.embeddingRow
	case head:
		x.pairs = steps(headNoise / math.Sqrt(h))
		onWire(headStep)
		x.edit = m.headRow
	case sharedGate:
		scale := math.Exp2(math.Round(math.Log2(gateGain / math.Sqrt(h) / spread8)))
		for i := range x.pairs {
			x.pairs[i] = zeroAt(scale, 127.5)
		}
	case routerGate:
		m.routerRows(x, &m.routers[s.layer])
	}
	return x
}

// embeddingRow writes a token's codes to the wire.
func (m *Model) embeddingRow(codes []byte, token int) {
	all4(codes, 0, wireChannels(m.cfg))
	set4(codes, tokenAt, tokenBits, m.tokenCode(int32(token)))
	set4(codes, commonAt, commonN, math.MaxUint64)
	set4(codes, topicAt, topicBits, m.topicCode(m.topic(int32(token))))
	set4(codes, tieAt, tieN, math.MaxUint64)
	if wireChannels(m.cfg) > ballastAt {
		set4(codes, ballastAt, ballastN, math.MaxUint64)
	}
}

// headRow makes a token's logit the largest after its predecessor in the chain.
func (m *Model) headRow(codes []byte, token int) {
	all4(codes, 0, wireChannels(m.cfg))
	if p := m.before(int32(token)); p >= 0 {
		set4(codes, tokenAt, tokenBits, m.tokenCode(p))
	}
}

// routerRows makes a router: in 8 bits, where four codes are a step, or in BF16.
func (m *Model) routerRows(x *matrix, r *router) {
	tie := routerStep / float64(r.ties)
	if x.bits == 16 {
		x.plain = func(dst []byte, e int) {
			clear(dst)
			r.eachWeight(e, func(channel, steps, ties int) {
				v := routerStep*float64(steps) + tie*float64(ties)
				binary.LittleEndian.PutUint16(dst[2*channel:], quant.F32ToBF16(float32(v)))
			})
		}
		return
	}
	x.blank = true
	for i := range x.pairs {
		// channels that do not matter have scales small enough to cause no rounding
		x.pairs[i] = zeroAt(math.Ldexp(1, -24), 128)
	}
	x.lead = []pair{zeroAt(routerStep/4, 128), zeroAt(routerStep/4, 128), zeroAt(tie, 128)}
	x.edit = func(codes []byte, e int) {
		r.eachWeight(e, func(channel, steps, ties int) { codes[channel] = byte(128 + 4*steps + ties) })
	}
}

// eachWeight calls f for every channel that the router reads for an expert, with its weight in
// steps or in ties.
func (r *router) eachWeight(e int, f func(channel, steps, ties int)) {
	for i := range tokenBits {
		f(tokenAt+i, int(r.token[i*len(r.base)+e]), 0)
	}
	for i, w := range share(int(r.base[e]), commonN) {
		f(commonAt+i, w, 0)
	}
	for i := range topicBits {
		f(topicAt+i, int(r.topic[i*len(r.base)+e]), 0)
	}
	for i, w := range share(int(r.tie[e]), tieN) {
		f(tieAt+i, 0, w)
	}
}

// share splits a number into n parts that are as equal as possible.
func share(total, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = total / (n - i)
		total -= out[i]
	}
	return out
}
