package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestIdleEngine measures the process's processor time in the second after the last token of an
// engine that streams experts, on more threads than most machines that run this have cores: below 2
// % of a core. On a busy machine threads take a while to sleep, and the collector may work at any
// time, so the least of some seconds counts.
func TestIdleEngine(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 4), ExpertIO: actors.ExpertIOBuffered,
		ExpertMemory: 20 * pageSlot, RecordMemory: fewRecords})
	s := sequence(t, e)
	const window = time.Second
	least := window
	for range 5 {
		for token := range int32(16) {
			if _, err := s.Eval(context.Background(), []int32{token}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(window / 20)
		before := processorNS(t)
		time.Sleep(window)
		if least = min(least, time.Duration(processorNS(t)-before)); least <= window/50 {
			t.Logf("an idle engine used %v in %v", least, window)
			return
		}
	}
	t.Errorf("an idle engine used %v of a core in %v at best, want at most %v", least, window, window/50)
}
