package gpu

import (
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/model/route"
)

// Matrix is a weight matrix W[Rows, Cols] (out, in) on the device: y = W·x. Scales and Biases are
// zero unless the format has them.
type Matrix struct {
	Rows, Cols             int
	Format                 quant.Format
	Weight, Scales, Biases View
}

// With returns the matrix with those of the scales and biases that its format has.
func (m Matrix) With(scales, biases View) Matrix {
	if m.Format.ScaleBytes(m.Rows, m.Cols) > 0 {
		m.Scales = scales
	}
	if m.Format.BiasBytes(m.Rows, m.Cols) > 0 {
		m.Biases = biases
	}
	return m
}

// Upload copies host bytes to the device.
type Upload struct {
	Dst View
	Src []byte // left alone by the caller until the ticket is done
}

// Download copies device bytes to the host.
type Download struct {
	Src View
	Dst []byte // belongs to the device until the ticket is done
}

// Fill sets Bytes bytes to zero.
type Fill struct {
	Dst   View
	Bytes int
}

// Embed looks rows up in the embedding table: Y[r, :] = Table[Tokens[r], :], dequantised.
// Y is [len(Tokens), Table.Cols].
type Embed struct {
	Table  Matrix
	Tokens []int32
	Y      View
}

// Gather copies rows: Y[i, :] = X[Rows[i], :]. X has XRows rows of Dim, Y is [len(Rows), Dim].
type Gather struct {
	X     View
	XRows int
	Rows  []int32
	Y     View
	Dim   int
}

// RMSNorm normalises vectors: y = w ⊙ x·(1/sqrt(mean(x²)+Eps)). W is float32 [Dim]; the zero View
// means all ones. Vector v of X begins at v·XStride floats, of Y at v·YStride; strides of 0 mean
// Dim. X and Y may be the same view with the same stride. With vectors = rows·heads this is the
// per-head norm.
type RMSNorm struct {
	X, W, Y          View
	Vectors, Dim     int
	XStride, YStride int // float32s
	Eps              float32
}

// MatMul multiplies rows by a matrix: Y[r, o] = Σ_i W[o, i]·X[r, i] + Bias[o]. Bias is float32
// [W.Rows]; the zero View means none. Row r of X begins at r·XStride floats, of Y at r·YStride; 0
// means W.Cols and W.Rows. X and Y do not overlap.
//
// Where W is affine a device may hold X as whole numbers of 24 bits for each quantisation group of
// W's inputs: an input is then off by at most 2^-23·max|x| over the group.
//
// A device may be set to round X to 8 bits, one scale for each quantisation group of W's inputs,
// where W is affine: every input becomes s·q with s = max|x|/127 over the group and q the nearest
// whole number, ties to even. Exact products never are.
type MatMul struct {
	W                Matrix
	X, Bias, Y       View
	Rows             int
	XStride, YStride int // float32s
	Exact            bool
}

// HeadMatMul multiplies each head's vector by that head's own block of one matrix. Head h's block
// is In or Out rows of W from row h·HeadRows + FirstRow on:
//
//	Y[r, h, o] = Σ_i W[h·HeadRows+FirstRow+o, i]·X[r, h, i]   i < In = W.Cols, o < Out
//
// or, if Transposed, with In rows of the block and Out = W.Cols:
//
//	Y[r, h, o] = Σ_i W[h·HeadRows+FirstRow+i, o]·X[r, h, i]
//
// Vector (r, h) of X begins at r·XRowStride + h·XHeadStride floats, of Y likewise. X and Y do not
// overlap.
type HeadMatMul struct {
	W                       Matrix
	X, Y                    View
	Rows, Heads, In, Out    int
	HeadRows, FirstRow      int
	Transposed              bool
	XRowStride, XHeadStride int // float32s
	YRowStride, YHeadStride int // float32s
}

// CopyHeads copies vectors: Y[r, h, d] = X[r, h, d], d < Dim, with the strides of HeadMatMul. X and
// Y do not overlap.
type CopyHeads struct {
	X, Y                    View
	Rows, Heads, Dim        int
	XRowStride, XHeadStride int // float32s
	YRowStride, YHeadStride int // float32s
}

// Add adds elementwise: Y[i] = A[i] + B[i], i < N. Y may be A or B.
type Add struct {
	A, B, Y View
	N       int // float32s
}

// SigmoidGate multiplies by a gate: X[r, h, d] *= σ(G[r, h, d]). X is dense [Rows, Heads, Dim];
// vector (r, h) of G begins at r·GRowStride + h·GHeadStride floats. PerHead means that it is one
// number, the gate of all channels.
type SigmoidGate struct {
	X, G                    View
	Rows, Heads, Dim        int
	GRowStride, GHeadStride int // float32s
	PerHead                 bool
}

// GateDim returns the numbers of a vector of G.
func (o *SigmoidGate) GateDim() int {
	if o.PerHead {
		return 1
	}
	return o.Dim
}

// SwiGLU is Y[r, i] = silu(Gate[r, i])·Up[r, i], or the unit that Clamp asks for, all dense [Rows,
// Dim]; Y may be Gate or Up.
type SwiGLU struct {
	Gate, Up, Y View
	Rows, Dim   int
	Clamp       Clamp
}

// Rope rotates the first Rotary channels of each head in place. Table is float32 [Rows, Rotary/2,
// 2]: the cosine and the sine of each row's angles. Head (r, h) of X begins at r·RowStride +
// h·HeadStride floats. Channel i is paired with i+Rotary/2, or, if Interleaved, 2i with 2i+1: y_a =
// x_a·cos - x_b·sin, y_b = x_a·sin + x_b·cos. Channels from Rotary on are left alone.
type Rope struct {
	X, Table              View
	Rows, Heads, Rotary   int
	RowStride, HeadStride int // float32s
	Interleaved           bool
}

// KV is one layer's part of one sequence's paged key-value cache. Page p holds positions p·PageRows
// … of this layer: keys [PageRows, Dim] from KOffset bytes of page p on, values [PageRows, VDim]
// likewise from VOffset on. Dim is key-value heads times head dimension. An operation's segments
// have the same offsets.
//
// With KVF32 they are float32. With KVInt8 they are codes int8 [PageRows, Dim], and from ScalesAt
// bytes further on scales float32 [Dim/Group, PageRows]: a value is code·scale. Group divides
// the channels of a head. For the channels x of one position and group,
//
//	scale = max|x|/127, the lowest 8 bits of its significand cleared     code = x/scale, the nearest whole number, ties to even
//
// with both quotients rounded to float32. So 127·scale is exact, the largest channel has the code
// ±127, and what the cache holds, rounded again, gives the same codes and scale: rows may leave as
// float32 and come back. A group whose channels all are below 127·2^-126 has the scale 0 and codes
// 0, one with a channel that is not finite has the scale NaN and codes 0.
type KV struct {
	Pages            Pages
	PageRows, Dim    int
	VDim             int // channels of a row of values; 0: Dim
	KOffset, VOffset int // bytes
	Format           KVFormat
	Group            int // channels that share a scale; 0 with KVF32
}

// KVSegment is the rows of one sequence in an operation: Rows rows from row Row on, at positions
// Pos, Pos+1, …
type KVSegment struct {
	Row, Rows, Pos int
	KV             KV
}

// AppendKV writes each segment's rows of K and V to the cache at their positions, in its format.
// Row r of K begins at r·KStride floats, of V at r·VStride; 0 means KV.Dim, and KV.VDim. A zero V
// leaves the values out: for a cache whose values are a part of its keys (KV.VOffset = KV.KOffset).
type AppendKV struct {
	K, V             View
	KStride, VStride int // float32s
	Segments         []KVSegment
}

// Attention is causal softmax attention over the paged cache, which holds the segment's own rows
// already. For row r at position p, query head h, with key-value head g = h / (Heads/KVHeads):
//
//	s_j = Scale·Q[r,h]·K[j,g]  for j = 0..p,   a = softmax(s),   Y[r,h] = Σ_j a_j·V[j,g]
//
// Head (r, h) of Q begins at r·QRowStride + h·QHeadStride floats; Y is dense [rows, Heads,
// HeadDim].
//
// Sinks, float32 [Heads], is a score of each head that takes part in the softmax without having a
// value, so that a sums to less than one:
//
//	a_j = exp(s_j) / (Σ_j exp(s_j) + exp(Sinks[h]))
//
// The zero View means none.
//
// With ValueDim not 0 a value has ValueDim channels, and Y is dense [rows, Heads, ValueDim]. Those
// of key-value head g begin at channel g·ValueDim of a row of values, which may be the row of keys
// itself if there is one key-value head.
//
// With Window not 0 row r attends to j = max(0, p-Window+1)..p, that is to Window positions with
// its own. Pages that lie before all of these as a whole are not looked at: their entries in the
// table may be anything.
//
// With ValueScale not 0 Y is multiplied by it.
//
// Chosen, int32 [rows, KVHeads, Budget], lists what row r attends to instead of 0..p with the heads
// of a key-value head, as Choose writes it: positions, or with Block blocks of positions, of which
// the row's own is the last. The entries are the first of the list, min(Budget, p/Block+1) of them,
// rising. A row that has chosen all positions gets the bits that it gets without Chosen.
type Attention struct {
	Q, Sinks, Chosen, Y     View
	Budget, Block           int // 0, 0 without Chosen
	QRowStride, QHeadStride int // float32s
	Heads, KVHeads, HeadDim int
	ValueDim                int
	Window                  int // 0: all positions
	Scale, ValueScale       float32
	Segments                []KVSegment
}

// LatentAttention is causal attention over a cache of compressed vectors that are expanded for each
// head. A row of the cache's keys is [latent (Rank), rotated key (Rope)]; the values are not used.
// For row r at position p and head h:
//
//	k_j = [ Keys_h·latent_j (Nope), rotated key_j ]      v_j = Values_h·latent_j (ValueDim)
//	s_j = Scale·Q[r, h]·k_j  for j = 0..p,   a = softmax(s),   Y[r, h] = Σ_j a_j·v_j
//
// Keys_h is Nope rows of Keys from row h·KeyRows on, or, if KeysTransposed, the transpose of Rank
// rows of them; Values_h is ValueDim rows of Values from row h·ValueRows + FirstValue on. Head (r,
// h) of Q begins at r·QRowStride + h·QHeadStride floats and has Nope+Rope channels. Y is dense
// [rows, Heads, ValueDim]. It computes what the folded form (HeadMatMul, Attention, HeadMatMul)
// does with fewer operations when many rows share one expansion.
type LatentAttention struct {
	Q, Y                              View
	QRowStride, QHeadStride           int // float32s
	Keys, Values                      Matrix
	KeyRows, ValueRows, FirstValue    int
	KeysTransposed                    bool
	Heads, Rank, Nope, Rope, ValueDim int
	Scale                             float32
	Segments                          []KVSegment
}

// StateSegment is the rows of one sequence in an operation with a recurrent state of fixed size.
type StateSegment struct {
	Row, Rows int
	State     View
}

// CausalConv is a depthwise causal convolution with SiLU, row after row:
//
//	Y[t, c] = silu( Σ_j W[c, j]·x_{t-(Kernel-1)+j}[c] ),  j = 0..Kernel-1; tap Kernel-1 is the newest
//
// X and Y are dense [rows, Channels] and do not overlap. W is float32 [Channels, Kernel]. A
// segment's State is float32 [Kernel-1, Channels], the last raw inputs, oldest first; it is read
// before the segment's first row and holds the newest rows afterwards.
type CausalConv struct {
	X, W, Y          View
	Channels, Kernel int
	Segments         []StateSegment
}

// DeltaRule is the gated delta rule, row after row. QKV is dense [rows, 2·KeyHeads·KeyDim +
// ValueHeads·ValueDim]: queries, keys, values, head after head. Alpha and Beta are dense [rows,
// ValueHeads]; ALog and DtBias float32 [ValueHeads]. Per row and value head h with key head h /
// (ValueHeads/KeyHeads):
//
//	q̂ = q / sqrt(Σq² + 1e-6) · KeyDim^-0.5      k̂ = k / sqrt(Σk² + 1e-6)
//	g = exp(-exp(ALog)·softplus(alpha + DtBias))   β = σ(beta)
//	S ← g·S;  δ = β·(v - S·k̂);  S ← S + δ·k̂ᵀ;  Y[r, h] = S·q̂
//
// A segment's State is S, float32 [ValueHeads, ValueDim, KeyDim], advanced in place. Y is dense
// [rows, ValueHeads, ValueDim].
type DeltaRule struct {
	QKV, Alpha, Beta, ALog, DtBias, Y      View
	KeyHeads, ValueHeads, KeyDim, ValueDim int
	Segments                               []StateSegment
}

// GatedNorm is y = w ⊙ x·(1/sqrt(mean(x²)+Eps)) ⊙ silu(z) over vectors of Dim; X, Z, Y dense
// [Vectors, Dim], Y may be X. W is float32 [Dim].
type GatedNorm struct {
	X, W, Z, Y   View
	Vectors, Dim int
	Eps          float32
}

// List is numbers that an operation reads: in device memory from At on, or, if At is zero, in Host,
// with which they travel with the operation. Host is left alone by the caller until the ticket is
// done.
type List[T int32 | float32] struct {
	At   View
	Host []T
}

// Expert is one routed expert's weights. Gate and Up are [I, H], Down is [H, I]. Biases are float32
// and as long as their matrix has rows; the zero View means none, and an expert has all or none.
type Expert struct {
	Gate, Up, Down             Matrix
	GateBias, UpBias, DownBias View
}

// Biased reports whether the expert has biases.
func (e *Expert) Biased() bool { return !e.GateBias.IsZero() }

// Clamp bounds what a gated unit works on. With a Limit of 0 the unit is silu(g)·u. With one it is,
// of u between -Limit and Limit,
//
//	g·σ(Alpha·g)·(u + 1)  of min(g, Limit)   if Alpha is not 0
//	min(silu(g), Limit)·u                    if it is
//
// A NaN stays one.
type Clamp struct{ Limit, Alpha float32 }

// check reports bounds that are none.
func (k Clamp) check(c *checker) {
	if finite := k.Limit-k.Limit == 0 && k.Alpha-k.Alpha == 0; k != (Clamp{}) && !(finite && k.Limit > 0 && k.Alpha >= 0) {
		c.fail("Clamp is %v, want a limit above 0 and an alpha of at least 0, or neither", k)
	}
}

// TableBytes is the room that a device may want for its own form of one expert's entry in a table.
const TableBytes = 128

// ExpertTable is experts of one layer, which share their shape and formats; picks are indices into
// it.
//
// Without At it travels with each operation that uses it. With At, which has TableBytes for each
// expert at a multiple of 8, the device keeps its own form of it there: Tabulate writes it, and
// from then on the table does not change.
type ExpertTable struct {
	Experts []Expert
	At      View
	// Kept is the device's own, since Tabulate.
	Kept any

	written bool // by a Tabulate that a device has accepted
}

// Tabulate writes a table of experts to Table.At.
type Tabulate struct {
	Table *ExpertTable
}

// Route chooses each row's experts by its scores, float32 [Rows, Experts], as Rule says: Picks is
// int32 [Rows, TopK], heaviest first, Weights float32 [Rows, TopK]. Bias is float32 [Experts]; the
// zero View means none. Of equal keys the lower expert goes first.
//
// A row with a score that is not finite has no experts: its picks are -1-e, where e is the
// first such score's expert, and its weights 0.
type Route struct {
	Scores, Bias, Picks, Weights View
	Rows, Experts, TopK          int
	Rule                         route.Rule
}

// Experts runs routed experts over the rows that chose them:
//
//	Y[row, pick, :] = Down·( silu(Gate·X[row]) ⊙ (Up·X[row]) )   with the expert Table.Experts[Picks[row, pick]]
//
// Biases, where experts have them, are added to all three products. Clamp may ask for another unit
// than silu. Picks is [Rows, TopK]. A pick that is negative (or on the device none of the table) is
// no expert: its vector of Y is left alone. X is dense [Rows, H]; Y is dense [Rows, TopK, H].
// Scratch is float32 [Rows·TopK, 2·I], its contents undefined before and after.
type Experts struct {
	X, Y, Scratch View
	Rows, TopK    int
	Table         *ExpertTable
	Picks         List[int32]
	Clamp         Clamp
}

// Combine ends a Mixture-of-Experts layer, in this order:
//
//	acc = Σ_k Weights[r·TopK+k]·Routed[r, k, :]  (k ascending);  acc += t·Shared[r, :];  Y[r, :] = Residual[r, :] + acc
//
// t is σ(SharedGate[r]), or 1 if SharedGate is zero; without Shared the second step is left out.
// Routed is dense [Rows, TopK, Dim], the others dense [Rows, Dim], SharedGate [Rows], Weights
// [Rows, TopK]. Y may be Residual.
type Combine struct {
	Routed, Shared, SharedGate, Residual, Y View
	Weights                                 List[float32]
	Rows, TopK, Dim                         int
}

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
