package synth

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// groupSize is how many inputs share a scale.
const groupSize = 64

// Route names a law of routing.
type Route string

// The laws. Mild is about what published models do: consecutive tokens share a third of their
// experts. Uniform is the worst case for anything that caches experts.
const (
	Uniform Route = "uniform" // all experts alike, tokens independent
	Skew    Route = "skew"    // some experts are popular; tokens independent
	Mild    Route = "mild"    // popularity, and topics that last for a while
	Strong  Route = "strong"  // as mild, more of both
)

// law holds the standard deviations of the parts of a router's logits, before the norm's factor.
type law struct {
	zipf  float64 // popularity: an expert of rank r has -zipf·ln r
	topic float64
	token float64
}

// laws are the weights at 16 experts for each one used; see tuned.
var laws = map[Route]law{
	Uniform: {0, 0.15, 1},
	Skew:    {0.78, 0, 1.28},
	Mild:    {0.55, 0.97, 0.9},
	Strong:  {0.7, 1.2, 0.5},
}

// Routes returns the names of the laws.
func Routes() []string {
	var out []string
	for _, r := range slices.Sorted(maps.Keys(laws)) {
		out = append(out, string(r))
	}
	return out
}

// Options says what model to write. Shape must be set; every other field may be zero. The same
// Shape, sizes, Seed, Route, Topics, Run and RowOrder give the same bytes on every machine.
type Options struct {
	Shape Shape
	// Layers, Vocab and Experts change the size of the shape. 0 keeps the shape's own. If the shape
	// begins with dense layers, at least one layer with experts stays.
	Layers, Vocab, Experts int
	// Seed selects one of the models with the same laws.
	Seed uint64
	// Route is the law of routing. "" means mild.
	Route Route
	// Topics is how many topics tokens have. Tokens of one topic share part of their experts. 0
	// means 64.
	Topics int
	// Run is how many tokens of one topic follow each other in the chain. 0 means 64. Shorter runs
	// share fewer experts.
	Run int
	// RowOrder writes every matrix row after row, as moeflux and flash-moe read it. The default is
	// panels of 16 rows (package quant) for matrices that divide into them, except those that are
	// multiplied head by head. The numbers are the same.
	RowOrder bool

	// ExpertsOf is the directory of a model that Write wrote with the same options except Route,
	// Topics and Run. Its experts have the same bytes, so the new directory gets links to those
	// files. "" writes the files.
	ExpertsOf string

	// Workers is how many goroutines compute the bytes. 0 means GOMAXPROCS, at most 16. Each uses 8
	// MiB.
	Workers int
	// FreeSpace returns how many bytes may be written under dir. nil asks the file system.
	FreeSpace func(dir string) (uint64, error)
}

// withDefaults sets the defaults of fields that are zero and checks the rest.
func (o Options) withDefaults() (Options, error) {
	if o.Route == "" {
		o.Route = Mild
	}
	if o.Topics == 0 {
		o.Topics = 64
	}
	if o.Run == 0 {
		o.Run = 64
	}
	if _, ok := laws[o.Route]; !ok {
		return o, &OptionError{What: fmt.Sprintf("route %q", o.Route), Want: strings.Join(Routes(), ", ")}
	}
	for _, f := range []struct {
		name   string
		v, min int
	}{{"layers", o.Layers, 0}, {"vocabulary", o.Vocab, 0}, {"experts", o.Experts, 0}, {"topics", o.Topics, 1}, {"run", o.Run, 1}, {"workers", o.Workers, 0}} {
		if f.v < f.min || f.v > math.MaxInt32 {
			return o, &OptionError{What: fmt.Sprintf("%s %d", f.name, f.v), Want: fmt.Sprintf("%d or more", f.min)}
		}
	}
	return o, nil
}

// layout returns the layout of quantised matrices.
func (o Options) layout() quant.Layout {
	if o.RowOrder {
		return quant.Rows
	}
	return quant.Panels
}

// checkShape refuses configurations that the laws do not cover.
func checkShape(c *model.Config) error {
	bad := func(cond bool, want, format string, args ...any) error {
		if !cond {
			return nil
		}
		return &OptionError{What: fmt.Sprintf(format, args...), Want: want}
	}
	sigmoid := c.Scoring == model.SigmoidScores
	wire := wireChannels(c)
	errs := []error{
		bad(c.TieWordEmbeddings, "false, because the head makes the chain", "tie_word_embeddings true"),
		bad(c.HiddenSize < wire+groupSize, fmt.Sprintf("%d or more", wire+groupSize), "hidden_size %d", c.HiddenSize),
		bad(c.NumExperts > maxExperts, fmt.Sprintf("at most %d", maxExperts), "%d experts", c.NumExperts),
		bad(!sigmoid && (c.NGroup > 1 || c.CorrectionBias), "absent", "groups of experts or a correction bias with softmax scores"),
		bad(c.RouterBias, "absent", "a bias of the router's scores"),
		bad(c.VocabSize-len(specialTokens(c)) < 2, "large enough for two tokens that neither begin nor end a text", "vocab_size %d", c.VocabSize),
		bad(len(c.MoELayers()) == 0, "at least 1", "0 layers with experts"),
	}
	for _, m := range matrices(c) {
		errs = append(errs, bad(m.bits != 16 && m.cols%groupSize != 0, fmt.Sprintf("a multiple of %d", groupSize), "%d inputs of %s", m.cols, m.name))
	}
	errs = append(errs, bad(c.MoEIntermediateSize%groupSize != 0, fmt.Sprintf("a multiple of %d", groupSize), "moe_intermediate_size %d", c.MoEIntermediateSize))
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
