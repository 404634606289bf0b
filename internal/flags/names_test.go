package flags

import "testing"

func TestForUsers(t *testing.T) {
	for in, want := range map[string]string{
		"actors: Config.RingDepth is 70, but must be 1 to 64":                     "--ring-depth is 70, but must be 1 to 64",
		"raise Config.Context or shorten the text":                                "raise --ctx or shorten the text",
		"set Config.ExpertIO to auto, or Config.KV, and Config.Nothing":           "set --expert-io to auto, or --kv, and Config.Nothing",
		"sample: Options.TopP is 2":                                               "--top-p is 2",
		"host: Config.Threads is -1":                                              "host: --threads is -1",
		"m cannot be opened: weights: m: model: config.json: vocab_size: missing": "m cannot be opened: m: config.json: vocab_size: missing",
		"moeflux: moeflux: a":                                                     "a",
		"open /tmp/model: no such file":                                           "open /tmp/model: no such file",
		"actors: a\nactors: b":                                                    "a\nb",
	} {
		if got := ForUsers(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
