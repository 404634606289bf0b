package router_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/model/route"
	"github.com/moeflux/moeflux-actor/stages/router"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

// TestScripts runs testdata.
func TestScripts(t *testing.T) {
	stagetest.RunScripts(t, "testdata/*.txt", func(t *testing.T, a *stagetest.Args) stagetest.Scripted {
		c := router.New(router.Config{
			Layers: a.Int("layers", 2), Experts: a.Int("experts", 4), TopK: a.Int("topk", 2), Rule: router.Rule{Rule: route.Rule{NormTopK: a.Bool("norm")}},
			LastToken: a.Bool("lasttoken"), NextGate: a.Bool("nextgate"), First: a.Int("first", 0),
			Ahead: a.Int("layersahead", 1), AheadRows: a.Int("rowsahead", 8), PrefetchSlots: a.Int("prefetch", 4),
		})
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
