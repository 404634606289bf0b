package analyse

import (
	"os"
	"strings"
	"testing"
)

// The documentation has the causes as the code has them.
func TestCausesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := strings.Join(CauseTable(), "\n") + "\n"; !strings.Contains(string(text), "\n"+table) {
		t.Errorf("docs/trace.md does not have this table:\n%s", table)
	}
}
