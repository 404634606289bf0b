package router

import "github.com/moeflux/moeflux-actor/model/route"

// Rule is how the model's layers choose experts.
type Rule struct {
	route.Rule
	// Bias, [layers][experts], is added to scores for the choice, but not for the weights. nil, or
	// nil for a layer, means none.
	Bias [][]float32
}

// bias returns the bias of a layer, or nil.
func (r *Rule) bias(layer int) []float32 {
	if r.Bias == nil {
		return nil
	}
	return r.Bias[layer]
}

// chooser applies a rule.
type chooser struct {
	Rule
	memory route.Chooser
}

// rank returns the keys that the choice goes by.
func (c *chooser) rank(layer int, scores []float32) []float32 {
	return c.memory.Keys(&c.Rule.Rule, c.bias(layer), scores)
}
