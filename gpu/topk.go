package gpu

import "math"

// MaxTopK is the largest K of TopK.
const MaxTopK = 64

// TopK finds the K largest logits of each row, the largest first and of equal ones the lower index:
// Values[r, i] = Logits[r, Indices[r, i]]. NaN comes before everything, so that a row with one
// shows it; -0 equals 0. Stats[r] is the row's largest, max, and log Σ exp(l - max) over all its
// logits, so that the log-probability of a logit l is (l - max) - log Σ to the precision of
// float32; where the largest is not finite both are undefined.
//
// Logits is dense [Rows, Vocab], Values float32 and Indices int32 dense [Rows, K], Stats float32
// [Rows, 2]. K is at most MaxTopK and Vocab.
type TopK struct {
	Logits, Values, Indices, Stats View
	Rows, Vocab, K                 int
}

// Kind returns the kind, see Op.
func (o *TopK) Kind() Kind { return KindTopK }

// Name returns the operation's name, see Op.
func (o *TopK) Name() string { return "topk" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *TopK) Check() error {
	c := checker{op: o.Name()}
	c.positive("Rows", o.Rows)
	c.positive("Vocab", o.Vocab)
	c.positive("K", o.K)
	if c.ok() && (o.K > MaxTopK || o.K > o.Vocab) {
		c.fail("K is %d, want at most %d and the %d of the vocabulary", o.K, MaxTopK, o.Vocab)
	}
	if c.ok() && o.Vocab > math.MaxInt32 {
		c.fail("Vocab is %d, want at most %d", o.Vocab, math.MaxInt32)
	}
	l := c.dense("Logits", o.Logits, o.Rows, o.Vocab)
	v := c.dense("Values", o.Values, o.Rows, o.K)
	i := c.dense("Indices", o.Indices, o.Rows, o.K)
	s := c.dense("Stats", o.Stats, o.Rows, 2)
	c.apart("Logits", l, "Values", v)
	c.apart("Logits", l, "Indices", i)
	c.apart("Logits", l, "Stats", s)
	c.apart("Values", v, "Indices", i)
	c.apart("Values", v, "Stats", s)
	c.apart("Indices", i, "Stats", s)
	return c.result()
}
