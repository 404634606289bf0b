package tracetext

import (
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/whatif"
)

func TestWhatIf(t *testing.T) {
	p := &whatif.Prediction{
		Settings: whatif.Settings{RingDepth: 3}, DecodeRate: 12.5, Error: 0.021, Unknown: []string{"something"}, Unchecked: []string{"a device"},
		Measured: whatif.Result{DecodeRate: 10, Uses: 100, Hits: 80, Bytes: 3 << 20, DeviceNS: 5e6},
		Replayed: whatif.Result{DecodeRate: 10.2, Uses: 100, Hits: 80, Bytes: 3 << 20, DeviceNS: 5e6, ForExpertsNS: 2e6},
		Changed:  whatif.Result{DecodeRate: 12.8, Uses: 100, Hits: 90, Bytes: 1 << 20, DeviceNS: 5e6, ForExpertsNS: 1e6},
	}
	got := WhatIf(p, Style{})
	for _, want := range []string{
		"With --ring-depth 3: 12.50 tokens/s decoded, 25.0 % faster\n", "is 2.1 % off what was measured", "does not tell:\n  - something\n", "with an engine for:\n  - a device\n",
		"experts in memory when wanted    80.0 %      80.0 %                   90.0 %\n",
		"the device waits for experts                2.00 ms                  1.00 ms\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the text is\n%s\nwant %q in it", got, want)
		}
	}
}
