package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// timing says where the time of a call went, in the form of the header Server-Timing: what its
// answers took, all choices together.
func (t *tally) timing() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var queue, prompt, decode, device, disk time.Duration
	for i := range t.choices {
		c := &t.choices[i]
		if c.end != nil {
			a := &c.end.Usage.Account
			queue, device, disk = queue+time.Duration(a.QueueNS), device+time.Duration(a.DeviceNS), disk+time.Duration(a.DiskWaitNS)
		}
		if c.tokens > 0 {
			prompt, decode = prompt+c.first.Sub(c.prepared), decode+c.last.Sub(c.first)
		}
	}
	var b strings.Builder
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"queue", queue}, {"prompt", prompt}, {"tokens", decode}, {"device", device}, {"disk", disk}, {"total", time.Since(t.began)}} {
		fmt.Fprintf(&b, "%s;dur=%.3f, ", part.name, float64(part.took)/float64(time.Millisecond))
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// tellTiming puts it into the header, or, behind a stream, into the trailer.
func (t *tally) tellTiming(w http.ResponseWriter, streamed bool) {
	name := "Server-Timing"
	if streamed {
		name = http.TrailerPrefix + name
	}
	w.Header().Set(name, t.timing())
}
