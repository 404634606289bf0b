package dispatch_test

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

// TestScripts runs testdata. A line "submit tN: ..." names the operations that were handed to the
// device; "refuse N" lets the N-th submission from now fail, "finish N" takes back all commands up
// to tN, as a finished ticket does.
func TestScripts(t *testing.T) {
	stagetest.RunScripts(t, "testdata/*.txt", func(t *testing.T, a *stagetest.Args) stagetest.Scripted {
		b, err := open(t, dispatch.Config{
			ChunkRows: a.Int("chunk", 4), Lanes: a.Int("lanes", 2), PageRows: 4, MaxPages: a.Int("pages", 8), Ahead: a.Int("ahead", 0), AheadRows: a.Int("aheadrows", 4),
			AheadAlways: a.Bool("always"),
		}, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		do := func(command string, a *stagetest.Args) ([]string, error) {
			switch command {
			case "refuse":
				b.queue.refuse = a.Int("nth", 1)
			case "finish":
				b.queue.finish(a.Int("upto", 1))
			case "rest":
				if err := b.AtRest(); err != nil {
					return []string{err.Error()}, nil
				}
				return []string{"rest: nothing is held"}, nil
			case "states":
				return []string{fmt.Sprintf("states: %d", b.States())}, nil
			}
			return nil, nil
		}
		also := func() []string {
			lines := b.queue.lines
			b.queue.lines = nil
			return lines
		}
		return stagetest.Scripted{Core: b, Do: do, Also: also}
	})
}
