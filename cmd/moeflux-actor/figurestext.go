package main

import (
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// figuresText lists the definitions.
func figuresText() string {
	var b strings.Builder
	for _, f := range figures.Glossary() {
		line := "  " + f.Name + strings.Repeat(" ", max(1, 12-len(f.Name)))
		for _, word := range strings.Fields(f.Meaning) {
			if len(line)+len(word) > 76 {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", 14)
			}
			line += word + " "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
