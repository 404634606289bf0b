package main

import (
	"os"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// TestFigures finds the definition of every figure in docs/figures.md, in the help of bench, and in
// that of figures.
func TestFigures(t *testing.T) {
	raw, err := os.ReadFile("../../docs/figures.md")
	if err != nil {
		t.Fatal(err)
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	page := words(string(raw))
	help, topic := words(mustCall(t, "", "bench", "--help").stdout), words(mustCall(t, "", "help", "figures").stdout)
	for _, f := range figures.Glossary() {
		if want := "**" + f.Name + "**: " + f.Meaning; !strings.Contains(page, want) {
			t.Errorf("docs/figures.md lacks\n%s", want)
		}
		if want := f.Name + " " + f.Meaning; !strings.Contains(help, want) || !strings.Contains(topic, want) {
			t.Errorf("bench --help or help figures lacks\n%s", want)
		}
	}
	if n := strings.Count(page, "- **"); n != len(figures.Glossary()) {
		t.Errorf("docs/figures.md has %d figures, the program %d", n, len(figures.Glossary()))
	}
}
