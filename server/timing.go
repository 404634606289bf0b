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

// figures returns what the log says of a call: of several choices together.
func (t *tally) figures() []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	var prompt, cached, tokens int
	var queue int64
	var first time.Time
	finish := ""
	for i := range t.choices {
		c := &t.choices[i]
		prompt, cached, tokens = c.prompt, max(cached, c.reused), tokens+c.tokens
		if !c.first.IsZero() && (first.IsZero() || c.first.Before(first)) {
			first = c.first
		}
		if c.end != nil {
			queue += c.end.Usage.Account.QueueNS
			finish = string(c.end.Reason)
		}
	}
	args := []any{"model", t.model, "prompt_tokens", prompt, "cached_tokens", cached, "tokens", tokens}
	if !first.IsZero() {
		args = append(args, "first_token_ms", first.Sub(t.began).Milliseconds())
	}
	if finish != "" {
		args = append(args, "queue_ms", queue/1e6, "finish", finish)
	}
	return args
}
