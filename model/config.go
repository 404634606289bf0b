package model

import (
	"cmp"
	"slices"
)

// Arch is a supported architecture, named as in the checkpoint's model_type. The files of the
// families declare them.
type Arch string

// Mixer is what a layer mixes positions with.
type Mixer uint8

// The mixers.
const (
	LinearAttention Mixer = iota // gated delta-net: recurrent state of fixed size
	FullAttention                // softmax attention: keys and values of every position are kept
	// multi-head latent attention: one compressed vector of every position is kept
	LatentAttention
	// softmax attention to the last positions: their keys and values are kept
	WindowAttention
	numMixers
)

// String returns the mixer's name, but for latent attention as in config.json's layer_types.
func (m Mixer) String() string {
	switch m {
	case LinearAttention:
		return "linear_attention"
	case FullAttention:
		return "full_attention"
	case WindowAttention:
		return slidingAttention
	default:
		return "latent_attention"
	}
}

// FFN is what follows the mixer.
type FFN uint8

// The feed-forward parts.
const (
	MixtureOfExperts FFN = iota // router, routed experts, perhaps a shared one
	DenseMLP                    // one SwiGLU of width IntermediateSize
)

// QKNorm is how queries and keys of full attention are normalised.
type QKNorm uint8

// The norms of queries and keys.
const (
	NoQKNorm      QKNorm = iota
	QKNormPerHead        // each head over its channels; weight [HeadDim]
	QKNormWhole          // the whole projection at once; weight [heads·HeadDim]
)

// Scoring is how a router's raw outputs become weights.
type Scoring uint8

// The scorings.
const (
	SoftmaxScores Scoring = iota // softmax over all experts
	SigmoidScores                // each on its own
)

// SharedExpert is what runs beside the routed experts.
type SharedExpert uint8

// The shared experts.
const (
	NoSharedExpert      SharedExpert = iota
	SharedExpertGated                // times the sigmoid of a gate of its own
	SharedExpertUngated              // added unchanged
)

// Indexer is where it comes from what a row of softmax attention attends to.
type Indexer uint8

// The indexers.
const (
	NoIndexer    Indexer = iota // all up to the row's own
	OwnIndexer                  // chosen by the layer's own indexer
	LowerIndexer                // those that the nearest layer below with an indexer of its own has chosen
)

// Clamp bounds gates and ups before they are multiplied. With a Limit, and u = up between -Limit
// and Limit, a unit is g·σ(Alpha·g)·(u+1) of g = min(gate, Limit), or, with an Alpha of 0,
// min(silu(gate), Limit)·u.
type Clamp struct{ Limit, Alpha float64 }

// Layer is what one decoder layer is composed of.
type Layer struct {
	Mixer Mixer
	// MixerIndex counts the layers of the same mixer before this one.
	MixerIndex int
	Indexer    Indexer
	// IndexerIndex counts the layers with an indexer of their own before this one.
	IndexerIndex int
	FFN          FFN
	// MoEIndex counts the layers with routed experts before this one.
	MoEIndex int
	Clamp    Clamp // of routed experts; zero: none
	// MLPClamp is that of the shared expert, or of a dense layer.
	MLPClamp Clamp
}

// Config is a checkpoint's configuration. Fields keep the names of config.json in Go case; all that
// the architecture needs are checked to be present and possible. It is not changed after
// ParseConfig.
type Config struct {
	Arch Arch

	HiddenSize            int
	NumHiddenLayers       int
	VocabSize             int
	MaxPositionEmbeddings int
	RMSNormEps            float32
	TieWordEmbeddings     bool

	// Softmax attention, full and latent.
	NumAttentionHeads int
	NumKeyValueHeads  int // of full attention; with latent attention NumAttentionHeads
	// of full attention; with latent attention that of queries and keys,
	// QKNopeHeadDim+QKRopeHeadDim
	HeadDim int
	// channels of a head that rope rotates; with latent attention QKRopeHeadDim
	RotaryDim       int
	RopeTheta       float64 // base of the rotary frequencies
	RopeInterleaved bool    // channels 2i and 2i+1 turn together, not i and i+RotaryDim/2
	YaRN            *YaRN   // nil: plain frequencies
	// Llama3 stretches the frequencies of layers without a window; nil: it does not. Then there is
	// no YaRN.
	Llama3 *Llama3
	// QueryGrowth is nil where queries count the same at all positions. With it latent attention
	// rotates interleaved, and QKNopeHeadDim is even.
	QueryGrowth *QueryGrowth

	// Full attention.
	AttnOutputGate bool // q_proj makes per head a query and the gate of its output
	HeadGate       bool // g_proj makes one number a head, the gate of its output
	QKNorm         QKNorm
	NormAfterRope  bool // heads are normalised after they are rotated, and not before
	AttentionBias  bool // of the query, key and value projections
	OutputBias     bool // of the output projection
	AttentionSinks bool // each head has a score that counts in the softmax and has no value
	// what values, weighted and summed, are multiplied by; 0: nothing
	ValueScale float32
	// Sliding is nil if no layer has a window.
	Sliding *Sliding

	// Latent attention.
	QLoraRank     int // 0: one q_proj without compression
	KVLoraRank    int
	QKNopeHeadDim int
	QKRopeHeadDim int
	VHeadDim      int // of full attention, too, where values are narrower than keys; else 0

	// The indexer; 0 where rows attend to all positions. It has IndexNHeads queries of IndexHeadDim
	// channels, of which it rotates the first RotaryDim, and one key a position. Rows of latent
	// attention attend to the IndexTopK positions that it scores highest. With full attention it
	// has a query for each key-value head, whose heads attend to IndexTopK blocks of IndexBlock
	// positions: the row's own and the IndexLocal-1 before it, and of the others those with the
	// position that it scores highest.
	IndexNHeads            int
	IndexHeadDim           int
	IndexTopK              int
	IndexBlock, IndexLocal int // 0, 0 with latent attention
	IndexerRopeInterleaved bool

	// Linear attention.
	LinearNumKeyHeads   int
	LinearNumValueHeads int
	LinearKeyHeadDim    int
	LinearValueHeadDim  int
	LinearConvKernelDim int

	// IntermediateSize is the width of dense layers; 0 if there are none.
	IntermediateSize int

	// Mixture of experts.
	NumExperts                   int
	NumExpertsPerTok             int
	MoEIntermediateSize          int
	SharedExpert                 SharedExpert
	SharedExpertIntermediateSize int
	Scoring                      Scoring
	// divide the picked weights by their sum; with SigmoidScores 1e-20 is added to it
	NormTopKProb bool
	// a bias per expert takes part in the choice, not in the weight
	CorrectionBias bool
	RouterBias     bool // a bias is part of the scores, of choice and weight
	// experts are chosen from the best TopKGroup of NGroup groups; 1, 1: no groups
	NGroup, TopKGroup   int
	RoutedScalingFactor float32 // what the weights are multiplied by in the end
	ExpertBias          bool    // all three projections of routed experts have biases

	// Of checkpoints quantised by GPTQ: those in its first format store one less than each zero
	// point, and in some the inputs of a group need not be neighbours.
	ZeroPointsLessOne bool
	GroupsOutOfOrder  bool

	// EOSTokenIDs end a text: config.json's and generation_config.json's together, ascending.
	EOSTokenIDs []int32
	// BOSTokenID is config.json's or generation_config.json's bos_token_id, -1 if neither has one.
	BOSTokenID int32

	Layers []Layer // [NumHiddenLayers]
}

// LinearKeyDim returns the channels of all query heads, and equally of all key heads, of linear
// attention.
func (c *Config) LinearKeyDim() int { return c.LinearNumKeyHeads * c.LinearKeyHeadDim }

// LinearValueDim returns the channels of all value heads of linear attention.
func (c *Config) LinearValueDim() int { return c.LinearNumValueHeads * c.LinearValueHeadDim }

// LinearConvDim returns the channels of the causal convolution: queries, keys, values.
func (c *Config) LinearConvDim() int { return 2*c.LinearKeyDim() + c.LinearValueDim() }

// KVDim returns the channels of one position's keys, and equally of its values, in one layer of
// full attention.
func (c *Config) KVDim() int { return c.NumKeyValueHeads * c.HeadDim }

// LatentDim returns the channels that latent attention keeps of one position in one layer: latent
// and rotated key.
func (c *Config) LatentDim() int { return c.KVLoraRank + c.QKRopeHeadDim }

// Count returns how many layers have the mixer m.
func (c *Config) Count(m Mixer) int {
	n := 0
	for _, l := range c.Layers {
		if l.Mixer == m {
			n++
		}
	}
	return n
}

// IndexBudget returns up to how many positions rows attend to all although a layer has an indexer;
// 0 if none has.
func (c *Config) IndexBudget() int { return c.IndexTopK * max(c.IndexBlock, 1) }

// IndexLists returns how many lists of IndexTopK entries an indexer makes for a row.
func (c *Config) IndexLists() int {
	if c.IndexBlock > 0 {
		return c.IndexNHeads
	}
	return 1
}

// Indexers returns how many layers have an indexer of their own.
func (c *Config) Indexers() int {
	n := 0
	for _, l := range c.Layers {
		if l.Indexer == OwnIndexer {
			n++
		}
	}
	return n
}

// MoELayers returns the indexes of the layers with routed experts, ascending.
func (c *Config) MoELayers() []int {
	var out []int
	for i, l := range c.Layers {
		if l.FFN == MixtureOfExperts {
			out = append(out, i)
		}
	}
	return out
}

// Size is one whole-number entry of a configuration.
type Size struct {
	Key   string // as in config.json
	Value int    // above 0
}

// Sizes returns the whole-number sizes that the model's tensors depend on, in a fixed order, under
// the keys that the architecture's config.json has for them.
func (c *Config) Sizes() []Size {
	keys, shared := sizeKeys{}, c.SharedExpertIntermediateSize
	if f := findFamily(string(c.Arch)); f != nil {
		keys = f.keys
	}
	if keys.counted {
		shared /= max(c.MoEIntermediateSize, 1)
	}
	headDim, kvHeads := c.HeadDim, c.NumKeyValueHeads
	if c.KVLoraRank > 0 {
		headDim, kvHeads = 0, 0 // derived; what config.json may say of them means nothing
	}
	index := *c
	if c.IndexBlock > 0 {
		index = Config{} // in an object of their own
	}
	return slices.DeleteFunc([]Size{
		{"hidden_size", c.HiddenSize},
		{"num_hidden_layers", c.NumHiddenLayers},
		{"num_attention_heads", c.NumAttentionHeads},
		{cmp.Or(keys.kvHeads, "num_key_value_heads"), kvHeads},
		{"head_dim", headDim},
		{"vocab_size", c.VocabSize},
		{keys.experts, c.NumExperts},
		{cmp.Or(keys.picks, picksKey), c.NumExpertsPerTok},
		{keys.width, c.MoEIntermediateSize},
		{keys.shared, shared},
		{"linear_num_value_heads", c.LinearNumValueHeads},
		{"linear_num_key_heads", c.LinearNumKeyHeads},
		{"linear_key_head_dim", c.LinearKeyHeadDim},
		{"linear_value_head_dim", c.LinearValueHeadDim},
		{"linear_conv_kernel_dim", c.LinearConvKernelDim},
		{cmp.Or(keys.dense, denseKey), c.IntermediateSize},
		{"q_lora_rank", c.QLoraRank},
		{"kv_lora_rank", c.KVLoraRank},
		{"qk_nope_head_dim", c.QKNopeHeadDim},
		{"qk_rope_head_dim", c.QKRopeHeadDim},
		{"v_head_dim", c.VHeadDim},
		{"index_n_heads", index.IndexNHeads},
		{"index_head_dim", index.IndexHeadDim},
		{"index_topk", index.IndexTopK},
	}, func(s Size) bool { return s.Value == 0 || s.Key == "" })
}
