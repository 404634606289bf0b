package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestWithFlags shows what errors of libraries advise as the flags that a user has.
func TestWithFlags(t *testing.T) {
	for _, c := range []struct {
		err  error
		want []string
	}{
		{&stages.ContextError{}, []string{"raise --ctx "}},
		{&stages.StateMemoryError{}, []string{"raise --state-memory"}},
		{&stages.ParkFullError{}, []string{"raise --parked-memory", "set --state-dir"}},
		{&stages.CheckpointMemoryError{}, []string{"raise --checkpoint-memory"}},
		{&actors.ContextMemoryError{Int8: true}, []string{"lower --ctx", "raise --state-memory", "with --kv"}},
		{&actors.MemoryError{}, []string{"set --expert-memory"}},
		{&actors.MemoryError{Parked: 1}, []string{"set --expert-memory", "lower --parked-memory"}},
		{fmt.Errorf("Config.Tracer and MyConfig.KV, then Config.ExpertIO"), []string{"Config.Tracer and MyConfig.KV, then --expert-io"}},
	} {
		got := flags.OneLine(c.err)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q does not contain %q", got, want)
			}
		}
	}
}

// TestAdviceNamesFlags asks for a context for which there is no memory.
func TestAdviceNamesFlags(t *testing.T) {
	o := call(t, "", "run", "-p", "x", "--ctx", "500", "--state-memory", "1KiB")
	if o.code != exitFailed || !strings.Contains(o.stderr, "lower --ctx or raise --state-memory") || strings.Contains(o.stderr, "Config.") {
		t.Errorf("exit %d: %s", o.code, o.stderr)
	}
}
