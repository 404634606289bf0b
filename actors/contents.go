package actors

import (
	"errors"

	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Contents is what the files of a model hold, whatever runs it.
type Contents struct {
	Model  *model.Config
	Record model.ExpertLayout // of an expert of the first layer that has some; all have as many bytes

	WeightBytes int64 // everything but routed experts
	ExpertBytes int64 // all routed experts
	PanelBytes  int64 // of both, what is stored in panels; the rest is in rows
	// of WeightBytes, what a token touches: all but the rows of the embedding table that belong to
	// other tokens (all of it, if the head is the same matrix)
	TouchedWeights int64
}

// Describe returns what the files of the model hold that a Config names by Model and ExpertsDir. No
// device is needed. Errors: *weights.NotModelError, and those of files.
func Describe(cfg Config) (Contents, error) {
	c, err := describe(cfg)
	if err != nil {
		return Contents{}, modelfiles.Explain(cfg.Model, err)
	}
	return c, nil
}

func describe(cfg Config) (c Contents, err error) {
	f, err := modelfiles.Open(cfg.where())
	if err != nil {
		return Contents{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, w, x := f.Config, f.Weights, f.Experts
	embed, err := w.Matrix("model.embed_tokens", m.VocabSize, m.HiddenSize)
	if err != nil {
		return Contents{}, err
	}
	experts := int64(x.Experts()) * int64(len(x.Layers()))
	c = Contents{
		Model: m, Record: x.Layout(), WeightBytes: int64(len(w.Mapping())), ExpertBytes: experts * int64(x.Layout().Bytes), PanelBytes: w.PanelBytes(),
		TouchedWeights: int64(len(w.Mapping())),
	}
	for _, layer := range x.Layers() {
		l := x.LayoutOf(layer)
		for _, p := range []model.ExpertPart{l.Gate, l.Up, l.Down} {
			if p.Format.Layout == quant.Panels {
				c.PanelBytes += int64(x.Experts()) * int64(p.Format.Bytes(p.Rows, p.Cols))
			}
		}
	}
	if !m.TieWordEmbeddings {
		c.TouchedWeights -= int64(embed.Format.Bytes(m.VocabSize-1, m.HiddenSize))
	}
	return c, nil
}

// TouchedExperts returns the bytes of experts that a token touches if it uses topK experts of each
// layer that has some.
func (c *Contents) TouchedExperts(topK int) int64 {
	return int64(c.Record.Bytes) * int64(topK) * int64(len(c.Model.MoELayers()))
}
