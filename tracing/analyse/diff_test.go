package analyse

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// noisyRun is tokens of one layer each: the device takes about 100 ms, and a read about read ms.
func noisyRun(t *testing.T, seed uint64, tokens int, read float64) *record.Recording {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	at := 1000
	for i := range tokens {
		device, disk := int(100_000*(1+0.1*r.NormFloat64())), int(1000*read*(1+0.3*r.NormFloat64()))
		asked, ended := at+1000+device, at+2000+device+disk
		fmt.Fprintf(&b, "step %d %d %d seq=1 req=%d pos=%d\nreq %d %d %d %d seq=1 pos=%d\n", i+1, at, ended+900, i+1, i+5, i+1, at, at, ended+900, i+5)
		fmt.Fprintf(&b, "msg sequencer EvalChunk %d %d %d\nmsg dispatch BeginLayer %d %d %d step=%d\n", at, at, at+500, at+500, at+500, at+1000, i+1)
		fmt.Fprintf(&b, "dev Mix %d %d %d step=%d\nmsg dispatch TicketDone %d %d %d step=%d\n", at+1000, at+1000, asked, i+1, asked, asked, asked+500, i+1)
		fmt.Fprintf(&b, "msg expert-io LayerRouted %d %d %d step=%d\nuse 1 %d Missing step=%d\nread 1 %d %d %d step=%d\n", asked+500, asked+500, asked+700, i+1, asked+500, i+1, asked+500, asked+500, ended, i+1)
		fmt.Fprintf(&b, "msg expert-io ExpertsRead %d %d %d step=%d\nmsg sequencer LogitsReady %d %d %d step=%d\n", ended, ended, ended+300, i+1, ended+300, ended+900, ended+950, i+1)
		at = ended + 1000
	}
	return made(t, b.String())
}

func TestCompare(t *testing.T) {
	changed := func(all []Change, name string) *Change {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
		return &Change{}
	}
	a, same, slower := noisyRun(t, 1, 60, 50), noisyRun(t, 2, 64, 50), noisyRun(t, 3, 50, 80)
	a.Meta.Settings = map[string]string{"read-workers": "4", "threads": "2"}
	slower.Meta.Settings = map[string]string{"read-workers": "1", "threads": "2"}
	d, err := Compare(a, same)
	if err != nil {
		t.Fatal(err)
	}
	if d.Tokens != 60 || d.Wall.Beyond || changed(d.Causes, "disk").Beyond || len(d.Settings) != 0 && d.Settings[0].B != "" {
		t.Errorf("two runs that are alike: %+v", d)
	}
	if d, err = Compare(a, slower); err != nil {
		t.Fatal(err)
	}
	disk, device := changed(d.Causes, "disk"), changed(d.Causes, "device")
	if d.Tokens != 50 || !d.Wall.Beyond || !disk.Beyond || device.Beyond || d.Causes[0].Name != "disk" || disk.NS < 20e6 || disk.NS > 35e6 || d.Layers[0].Name != "0" {
		t.Errorf("a slower disk: wall %+v, causes %+v", d.Wall, d.Causes)
	}
	if len(d.Settings) != 1 || d.Settings[0] != (Setting{"read-workers", "4", "1"}) {
		t.Errorf("the settings differ by %v", d.Settings)
	}
	if d, err = Compare(slower, a); err != nil || changed(d.Causes, "disk").NS >= 0 {
		t.Errorf("the other way around: %+v, %v", d.Causes, err)
	}
	if _, err := Compare(a, new(record.Recording)); err == nil {
		t.Error("a recording without tokens is compared")
	}
}
