package ggufmodel

import "github.com/moeflux/moeflux-actor/model"

// What the tests, which are outside of the package, look into.

func RuleCount() int { return len(rules) }

func PackName(arch model.Arch, name string) string { return rules[arch].packName(name) }

func (m *Model) Templates() any { return m.templates() }
