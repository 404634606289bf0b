package tracetext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
)

func TestDuration(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0.00 µs", 1: "0.00 µs", 999: "1.00 µs", 9_994: "9.99 µs", 9_996: "10.0 µs", 123_456: "123 µs", 999_499: "999 µs", 999_500: "1.00 ms",
		41_200_000: "41.2 ms", 999_600_000: "1.00 s", 7_590_000_000: "7.59 s", 123_000_000_000: "123 s", -5_000_000: "-5.00 ms",
	} {
		if got := Duration(ns); got != want {
			t.Errorf("%d ns is %q, want %q", ns, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1024: "1.00 KiB", 1 << 20: "1.00 MiB", 5 << 30: "5.00 GiB", 3 << 40: "3.00 TiB"} {
		if got := bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestWrapped(t *testing.T) {
	if got, want := wrapped("one two three 4 ms, five", 9, 3), "one two\n   three\n   4 ms,\n   five"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A table has as many columns as fit, and none that says nothing.
func TestTable(t *testing.T) {
	tab := newTable([]int{0}, "name", "none", "number", "text")
	tab.add("a", "0", "1", "x")
	tab.add("bcdef", "", "200", "yy")
	for width, want := range map[int]string{
		80: "  name   number  text\n  a           1     x\n  bcdef     200    yy\n",
		16: "  name   number\n  a           1\n  bcdef     200\n",
	} {
		var b strings.Builder
		if tab.write(&b, width); b.String() != want {
			t.Errorf("width %d: got\n%s", width, b.String())
		}
	}
}

func sampleWhy() *analyse.Why {
	shares := []analyse.Share{
		{Cause: analyse.Disk, NS: 6e6, Share: 0.6, Parts: []analyse.Part{{Where: "read again", NS: 4e6}, {Where: "not in memory before", NS: 2e6}}, Advice: "--expert-memory"},
		{Cause: analyse.Device, NS: 35e5, Share: 0.35, Parts: []analyse.Part{{Where: "experts", NS: 35e5}}, Advice: "--threads"},
		{Cause: analyse.Mailbox, NS: 5e5, Share: 0.05, Advice: "fewer programs"},
	}
	return &analyse.Why{
		Tokens: []analyse.Token{{Token: 7, Seq: 1, Pos: 12, Rows: 1, Outcome: "answered", WallNS: 1e7, Causes: shares}}, WallNS: 1e7, Causes: shares,
		Device:   analyse.Busy{ToNS: 1e7, BusyNS: 35e5, IdleNS: 65e5, Idle: []analyse.Share{{Cause: analyse.Disk, NS: 6e6, Share: 0.92}, {Cause: analyse.Mailbox, NS: 5e5, Share: 0.08}}},
		Disk:     analyse.Busy{ToNS: 1e7, BusyNS: 1e7},
		Experts:  analyse.Experts{Used: 10, Resident: 6, Late: 1, Missing: 3, Unguessed: 2, Dropped: 1},
		Settings: map[string]string{"threads": "4", "ring-depth": "2"},
		Missing:  analyse.Missing{Forgotten: map[string]uint64{"handled": 3, "uses": 4}},
	}
}

func TestWhy(t *testing.T) {
	want := `7 records are missing: the engine's memory for them was full. What follows is of the rest.
Token 7 (sequence 1, position 12) took 10.0 ms:
   60.0 %   6.00 ms  disk           it waited for experts that were being read: read again
                                      4.00 ms, not in memory before 2.00 ms
   35.0 %   3.50 ms  device         the device computed: experts
    5.0 %    500 µs  mailbox        messages waited until a stage took them
What to change:
  disk           --expert-memory
  device         --threads (now: threads 4)
The device worked for 35.0 % of the time and was idle for 65.0 %, for: disk 60.0 %, mailbox 5.0 %.
The disk worked for 100.0 % of the time and was idle for 0.0 %.
Of 10 uses of experts, 6 were in memory, 1 were late (being read on a guess), 0 were being read
  for another step, 3 were missing: 2 nobody had guessed, 1 were guessed, but no slot was spare.
`
	if got := Why(sampleWhy(), Style{}); got != want {
		t.Errorf("got\n%s", got)
	}
}

// Each width is kept to, but for what cannot be made narrower, and colours come only when asked
// for.
func TestStyle(t *testing.T) {
	show := &analyse.Show{
		Model: "m", Tokens: 1, Steps: 1, ToNS: 1e7, Slowest: sampleWhy().Tokens,
		Layers: []analyse.Layer{{
			Layer: 0, Kind: "full_attention", CostNS: 9e6, Causes: sampleWhy().Causes, ReadBytes: 123 << 20, Issued: 123, Wasted: 45,
			Experts: analyse.Experts{Used: 1000, Resident: 800, Late: 100, Missing: 100},
		}},
		Stages: []analyse.StageWork{{Stage: "router", Messages: 3, BusyNS: 1000}},
		Waterfall: &analyse.Waterfall{Token: 7, ToNS: 1e7, Rows: []analyse.Waterline{
			{Layer: 0, Name: "full_attention", Bars: []analyse.Bar{{FromNS: 0, ToNS: 5e6, Kind: analyse.Reading}, {FromNS: 4e6, ToNS: 8e6, Kind: analyse.Computing}}},
			{Layer: 1, Name: "head", Bars: []analyse.Bar{{FromNS: 99e5, ToNS: 1e7, Kind: analyse.Computing}}},
		}},
	}
	for _, width := range []int{60, 100, 200} {
		text := Show(show, Style{Width: width})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !strings.Contains(line, "the device computes") && !strings.Contains(line, "half of the tokens") {
				t.Errorf("width %d: a line has %d columns: %s", width, n, line)
			}
		}
		if want := "layer  hits  late  missing     read  guesses  wasted\n      0  80 %   100      100  123 MiB      123      45\n"; !strings.Contains(text, want) {
			t.Errorf("width %d: late and wasted guesses are not told:\n%s", width, text)
		}
		if strings.Contains(text, "\x1b") {
			t.Errorf("width %d: colours, though none were asked for", width)
		}
	}
	if !strings.Contains(Show(show, Style{Colour: true}), "\x1b[32m█") {
		t.Error("no colours, though they were asked for")
	}
	if got, want := bar(show.Waterfall, &show.Waterfall.Rows[0], 10, Style{}), "▒▒▒▒████"; got != want {
		t.Errorf("the bar is %q, want %q", got, want)
	}
	if got, want := bar(show.Waterfall, &show.Waterfall.Rows[1], 10, Style{}), "         █"; got != want {
		t.Errorf("the bar is %q, want %q", got, want)
	}
}
