package actors_test

import (
	"context"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestIdleEngine watches the process in a second after the last token of an engine that streams
// experts, on more threads than most machines that run this have cores: no thread spins, which
// would use a core, and none polls, which would wake up each millisecond or ten. The engine itself
// wakes up once a second, to look at memory. The limits are wide: 3 to 15 wake-ups and 1 to 2 ms of
// a processor are usual, but where page tables are emulated a wake-up of a process that is large
// and has the race detector costs 2 ms. On a busy machine threads take a while to sleep, and the
// collector may work at any time, so one second of several is enough.
func TestIdleEngine(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 4), ExpertIO: actors.ExpertIOBuffered,
		ExpertMemory: 20 * pageSlot, RecordMemory: fewRecords})
	s := sequence(t, e)
	const window, most, wakeUps = time.Second, time.Second / 10, 100
	for range 5 {
		for token := range int32(16) {
			if _, err := s.Eval(context.Background(), []int32{token}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(window / 20)
		before := usageNow(t)
		time.Sleep(window)
		after := usageNow(t)
		used, woken := time.Duration(after.processorNS()-before.processorNS()), after.Nvcsw-before.Nvcsw
		t.Logf("an idle engine used %v of a core in %v and woke up %d times", used, window, woken)
		if used <= most && woken <= wakeUps {
			return
		}
	}
	t.Errorf("an idle engine used more than %v of a core in %v or woke up more than %d times, five times over", most, window, wakeUps)
}
