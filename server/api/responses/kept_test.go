package responses

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

func TestConversationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKept(time.Now)
		big := []moeflux.Message{{Content: strings.Repeat("x", keptBytes/4)}}
		for i := range 10 {
			k.keep(fmt.Sprint(i), "", big)
			if _, ok := k.find("0", ""); !ok {
				t.Fatalf("the one that is used was forgotten after %d", i)
			}
		}
		if k.bytes > keptBytes || len(k.byID) != k.order.Len() || len(k.byID) > 4 {
			t.Errorf("%d bytes in %d conversations", k.bytes, len(k.byID))
		}
		time.Sleep(keptTime + time.Second)
		if _, ok := k.find("0", ""); ok {
			t.Error("a conversation outlives its time")
		}
		k.keep("new", "", nil)
		if len(k.byID) != 1 {
			t.Errorf("%d conversations are kept", len(k.byID))
		}
	})
}
