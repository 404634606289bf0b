package combine_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/combine"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

// TestScripts runs testdata.
func TestScripts(t *testing.T) {
	stagetest.RunScripts(t, "testdata/*.txt", func(t *testing.T, a *stagetest.Args) stagetest.Scripted {
		c := new(combine.Core)
		if first := a.Int("border", 0); first > 0 {
			c.Borders = stages.Borders{first}
		}
		// rest shows whether the core holds anything of a step that is over.
		rest := func(command string, _ *stagetest.Args) ([]string, error) {
			if err := c.AtRest(); err != nil {
				return []string{err.Error()}, nil
			}
			return []string{command + ": nothing is held"}, nil
		}
		return stagetest.Scripted{Core: c, Do: rest}
	})
}
