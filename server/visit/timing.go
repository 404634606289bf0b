package visit

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// timing says where the time of a call went, in the form of the header Server-Timing: what its
// answers took, all choices together.
func (t *Tally) timing() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var queue, prompt, decode, device, disk time.Duration
	for i := range t.choices {
		c := &t.choices[i]
		if c.End != nil {
			a := &c.End.Usage.Account
			queue, device, disk = queue+time.Duration(a.QueueNS), device+time.Duration(a.DeviceNS), disk+time.Duration(a.DiskWaitNS)
		}
		if c.Tokens > 0 {
			prompt, decode = prompt+c.First.Sub(c.Prepared), decode+c.Last.Sub(c.First)
		}
	}
	var b strings.Builder
	for _, part := range []struct {
		name string
		took time.Duration
	}{{"queue", queue}, {"prompt", prompt}, {"tokens", decode}, {"device", device}, {"disk", disk}, {"total", time.Since(t.Began)}} {
		fmt.Fprintf(&b, "%s;dur=%.3f, ", part.name, float64(part.took)/float64(time.Millisecond))
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// TellTiming puts it into the header, or, behind a stream, into the trailer.
func (t *Tally) TellTiming(w http.ResponseWriter, streamed bool) {
	name := "Server-Timing"
	if streamed {
		name = http.TrailerPrefix + name
	}
	w.Header().Set(name, t.timing())
}

// Figures returns what the log says of a call: of several choices together.
func (t *Tally) Figures() []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	var prompt, cached, tokens int
	var queue int64
	var first time.Time
	finish := ""
	for i := range t.choices {
		c := &t.choices[i]
		prompt, cached, tokens = c.Prompt, max(cached, c.Reused), tokens+c.Tokens
		if !c.First.IsZero() && (first.IsZero() || c.First.Before(first)) {
			first = c.First
		}
		if c.End != nil {
			queue += c.End.Usage.Account.QueueNS
			finish = string(c.End.Reason)
		}
	}
	args := []any{"model", t.Model, "prompt_tokens", prompt, "cached_tokens", cached, "tokens", tokens}
	if !first.IsZero() {
		args = append(args, "first_token_ms", first.Sub(t.Began).Milliseconds())
	}
	if finish != "" {
		args = append(args, "queue_ms", queue/1e6, "finish", finish)
	}
	return args
}
