package schedule_test

import "testing"

// What a token takes beside a prompt follows what is usual alone: neither the first tokens, which
// find all caches empty, nor a few long ones just before the prompt count.
func TestUsualStep(t *testing.T) {
	for name, takes := range map[string]func(i int) int64{
		"a cold start":    func(i int) int64 { return holdAlone + 50*holdAlone/int64(1+i*i) },
		"a few long":      func(i int) int64 { return holdAlone * (1 + int64(i/37)*4) },
		"slower for good": func(i int) int64 { return holdAlone * (1 + int64(i/20)) },
	} {
		d := newDecoder(t, 0.5)
		usual := int64(holdAlone)
		for i := range 40 {
			usual = takes(i)
			d.s.Holds(d.compute(usual))
			d.s.Ended(d.last)
		}
		if name == "a few long" {
			usual = holdAlone
		}
		d.prompt()
		ended := d.now
		if gap := d.until(d.compute(holdAlone)) - ended; gap < 2*usual || gap > 2*usual*11/10 {
			t.Errorf("%s: a token beside a prompt is due after %d ns, want about %d", name, gap, 2*usual)
		}
	}
}
