package moeflux

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/gpu/host"
)

// A request leaves a device that hangs 100 ms after its context has ended, whether or not it has a
// session; when the device answers, all is as before.
func TestHung(t *testing.T) {
	for name, s := range map[string]*Session{"without a session": nil, "in a session": new(Session)} {
		t.Run(name, func(t *testing.T) {
			d, err := host.New(host.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}()
			held := gputest.NewHeld(d)
			m := openDemo(t, Options{Config: Config{Device: held}})
			r := Request{Prompt: "if err != nil {\n", MaxTokens: 5, Sampling: greedy, Session: s}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			held.Arm()
			_, err = m.Generate(ctx, r).Wait()
			deadline, _ := ctx.Deadline()
			if late := time.Since(deadline); !errors.Is(err, context.DeadlineExceeded) || late > 5*time.Second { // 100 ms, and a busy machine
				t.Errorf("after its context the request took %v: %v", late, err)
			}
			held.Release()
			if got := mustCollect(t, m.Generate(t.Context(), r)); got.text != "\t\treturn nil, err" && got.text != "\treturn nil, err\n" {
				t.Errorf("afterwards %q", got.text)
			}
			if s != nil {
				closeSession(t, s)
			}
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
