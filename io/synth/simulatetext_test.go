package synth

import (
	"strings"
	"testing"
)

// TestSimulationText leaves out what did not happen.
func TestSimulationText(t *testing.T) {
	s := Simulation{Tokens: 4, Distinct: 0.5, Busiest: 0.25, LRU: []LRU{{Share: 0.125, Hits: 0.3, Late: 0.4}}}
	if got := s.Text(); strings.Contains(got, "too close") || !strings.Contains(got, "4 tokens use 50.0% of all experts, the busiest quarter of them for 25.0% of uses\n") ||
		!strings.HasSuffix(got, "\na cache of the last used 12.5% of all experts hits 30.0% from empty, 40.0% in the second half\n") {
		t.Errorf("got %q", got)
	}
	s.Close = 2
	if got := s.Text(); !strings.Contains(got, "\n2 decisions are too close to predict\n") {
		t.Errorf("got %q", got)
	}
}
