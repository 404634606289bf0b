package ggufmodel

import "github.com/moeflux/moeflux-actor/model"

// What the tests, which are outside of the package, look into.

func RuleCount() int { return len(rules) }

func PackName(name string, shared model.SharedExpert) string { return packName(name, shared) }

func (m *Model) Templates() any { return m.templates() }

func FitLlama3(x []float32, base float64) *model.Llama3 { return fitLlama3(x, base) }
