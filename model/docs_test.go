package model

import (
	"os"
	"strings"
	"testing"
)

// The page that says which models there are has a row for every family.
func TestEachFamilyIsDocumented(t *testing.T) {
	raw, err := os.ReadFile("../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(Known()) == 0 {
		t.Fatal("no families")
	}
	for _, arch := range Known() {
		if !strings.Contains(string(raw), "\n| `"+string(arch)+"` | `") {
			t.Errorf("docs/models.md has no row for %s, with a checkpoint that is published", arch)
		}
	}
	for _, modelType := range Refused() {
		if !strings.Contains(string(raw), "`"+modelType+"`") {
			t.Errorf("docs/models.md does not say that %s is refused", modelType)
		}
	}
}
