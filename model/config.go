package model

// Arch is a supported architecture, named as in the checkpoint's model_type.
type Arch string

// The architectures.
const (
	Qwen35MoE Arch = "qwen3_5_moe"
)

// Mixer is what a layer mixes positions with.
type Mixer uint8

// The mixers.
const (
	LinearAttention Mixer = iota // gated delta-net: recurrent state of fixed size
	FullAttention                // softmax attention: key-value cache that grows
)

// String returns the mixer's name in config.json's layer_types.
func (m Mixer) String() string {
	if m == FullAttention {
		return "full_attention"
	}
	return "linear_attention"
}

// Layer is what one decoder layer is composed of.
type Layer struct {
	Mixer Mixer
	// MixerIndex counts the layers of the same mixer before this one.
	MixerIndex int
}

// Config is a checkpoint's configuration. Fields keep the names of config.json in Go case; all that the
// architecture needs are checked to be present and possible. It is not changed after ParseConfig.
type Config struct {
	Arch Arch

	HiddenSize            int
	NumHiddenLayers       int
	VocabSize             int
	MaxPositionEmbeddings int
	RMSNormEps            float32
	TieWordEmbeddings     bool

	// Softmax attention.
	NumAttentionHeads int
	NumKeyValueHeads  int
	HeadDim           int
	RotaryDim         int     // channels of a head that rope rotates: HeadDim times partial_rotary_factor
	RopeTheta         float64 // base of the rotary frequencies

	// Linear attention.
	LinearNumKeyHeads   int
	LinearNumValueHeads int
	LinearKeyHeadDim    int
	LinearValueHeadDim  int
	LinearConvKernelDim int

	// Mixture of experts.
	NumExperts                   int
	NumExpertsPerTok             int
	MoEIntermediateSize          int
	SharedExpertIntermediateSize int
	NormTopKProb                 bool // divide the picked weights by their sum

	// EOSTokenIDs end a text: config.json's and generation_config.json's together, ascending.
	EOSTokenIDs []int32
	// BOSTokenID is config.json's or generation_config.json's bos_token_id, -1 if neither has one.
	BOSTokenID int32

	Layers []Layer // [NumHiddenLayers]
}

// LinearKeyDim returns the channels of all query heads, and equally of all key heads, of linear attention.
func (c *Config) LinearKeyDim() int { return c.LinearNumKeyHeads * c.LinearKeyHeadDim }

// LinearValueDim returns the channels of all value heads of linear attention.
func (c *Config) LinearValueDim() int { return c.LinearNumValueHeads * c.LinearValueHeadDim }

// LinearConvDim returns the channels of the causal convolution: queries, keys, values.
func (c *Config) LinearConvDim() int { return 2*c.LinearKeyDim() + c.LinearValueDim() }

// KVDim returns the channels of one position's keys, and equally of its values, in one layer.
func (c *Config) KVDim() int { return c.NumKeyValueHeads * c.HeadDim }

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

// MoELayers returns the indexes of the layers whose MLP is a mixture of experts, ascending.
func (c *Config) MoELayers() []int {
	out := make([]int, len(c.Layers))
	for i := range out {
		out[i] = i
	}
	return out
}

// Size is one whole-number entry of a configuration.
type Size struct {
	Key   string // as in config.json
	Value int
}

// Sizes returns the whole-number sizes that the model's tensors depend on, in a fixed order.
func (c *Config) Sizes() []Size {
	return []Size{
		{"hidden_size", c.HiddenSize},
		{"num_hidden_layers", c.NumHiddenLayers},
		{"num_attention_heads", c.NumAttentionHeads},
		{"num_key_value_heads", c.NumKeyValueHeads},
		{"head_dim", c.HeadDim},
		{"vocab_size", c.VocabSize},
		{"num_experts", c.NumExperts},
		{"num_experts_per_tok", c.NumExpertsPerTok},
		{"moe_intermediate_size", c.MoEIntermediateSize},
		{"shared_expert_intermediate_size", c.SharedExpertIntermediateSize},
		{"linear_num_value_heads", c.LinearNumValueHeads},
		{"linear_num_key_heads", c.LinearNumKeyHeads},
		{"linear_key_head_dim", c.LinearKeyHeadDim},
		{"linear_value_head_dim", c.LinearValueHeadDim},
		{"linear_conv_kernel_dim", c.LinearConvKernelDim},
	}
}
