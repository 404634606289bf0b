package ggufmodel

import "github.com/moeflux/moeflux-actor/model"

// What the tests, which are outside of the package, look into.

func RuleCount() int { return len(rules) }

func PackName(name string, shared model.SharedExpert) string { return packName(name, shared) }

func (m *Model) Templates() any { return m.templates() }
