package access

import (
	"strings"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

func TestReadKeys(t *testing.T) {
	keys, err := Read(strings.NewReader("# ours\n\nsk-11111111 name=team class=background weight=2 running=3 queued=4 requests=5 tokens=6 admin=yes\n  sk-22222222 admin=no\n"))
	if err != nil || len(keys) != 2 || keys[0] != (Key{Secret: "sk-11111111", Name: "team", Class: moeflux.Background, Weight: 2, Running: 3, Queued: 4, RequestsPerMinute: 5, TokensPerMinute: 6, Admin: true}) || keys[1].Name != "key-3e68d4c5" || keys[1].Class != moeflux.Normal || keys[1].Admin {
		t.Errorf("%+v, %v", keys, err)
	}
	for text, part := range map[string]string{
		"": "there is none", `{"key": "x"}`: "letters, digits", "sk-11111111 x": "NAME=VALUE", "sk-11111111 class=best": "background, normal or interactive",
		"sk-11111111 running=0": "from 1", "sk-11111111 weight=0": "from 1 to 1000", "sk-11111111 weight=1001": "from 1 to 1000", "sk-11111111 weight=0.5": "from 1 to 1000", "sk-11111111 colour=red": "no setting colour", "sk-11111111 admin=1": "yes or no",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, keys := range [][]Key{{{Secret: "short", Name: "x"}}, {{Secret: "sk-11111111"}, {Secret: "sk-11111111"}}, {{Secret: "sk-11111111", Name: "x", Running: 1}, {Secret: "sk-22222222", Name: "x"}}, {{Secret: "sk-11111111", Name: "x", Weight: 2}, {Secret: "sk-22222222", Name: "x"}}, {{Secret: "sk-11111111", Weight: -1}}, {{Secret: "sk-11111111", Weight: 1001}}, {{Secret: "sk-11111111", Name: Others}}} {
		if _, err := NewRing(keys, time.Now); err == nil {
			t.Errorf("%v is accepted", keys)
		}
	}
}
