package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/scripted"
)

// A body that says that it is too large is refused before any of it comes. A client that asks
// whether to send its body is told to only where it will be read.
func TestDeclaredBody(t *testing.T) {
	s := serving(t, new(scripted.Model), func(o *Options) {
		o.MaxBody, o.Patience = int64(len(hello)), time.Hour
		o.Keys = []Key{{Secret: "sk-first-first"}, {Secret: "sk-second-second", Name: "b", RequestsPerMinute: 1}}
	})
	if status, body := post(t, s.URL+"/v1/chat/completions", hello, "X-Api-Key", "sk-second-second"); status != 200 {
		t.Fatal(status, body)
	}
	const expect = "Expect: 100-continue\r\n"
	for _, tc := range []struct {
		name, headers, key string
		length             int
		first              int // the first status that comes, before any of the body is sent
	}{
		{"too large", "", "sk-first-first", len(hello) + 1, 413},
		{"far too large", "", "sk-first-first", 1 << 50, 413},
		{"too large, and asks", expect, "sk-first-first", len(hello) + 1, 413},
		{"asks", expect, "sk-first-first", len(hello), 100},
		{"asks with a wrong key", expect, "sk-wrong-wrong", len(hello), 401},
		{"asks beyond its quota", expect, "sk-second-second", len(hello), 429},
		{"asks with a wrong type", expect + "Content-Type: text/plain\r\n", "sk-first-first", len(hello), 415},
	} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		kind := "Content-Type: application/json\r\n"
		if strings.Contains(tc.headers, "Content-Type") {
			kind = ""
		}
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: %s\r\n%s%sContent-Length: %d\r\n\r\n", tc.key, kind, tc.headers, tc.length)
		in := bufio.NewReader(c)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != tc.first {
			t.Errorf("%s: %v, %v, want %d", tc.name, resp, err, tc.first)
			c.Close()
			continue
		}
		if tc.first == 100 {
			io.WriteString(c, hello)
			if resp, err = http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
				t.Errorf("%s: then %v, %v", tc.name, resp, err)
			}
		} else if !resp.Close {
			t.Errorf("%s: the connection stays, and what comes next would be taken for a request", tc.name)
		}
		c.Close()
	}
}
