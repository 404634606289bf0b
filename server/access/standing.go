package access

import (
	"net/http"
	"strconv"
	"time"

	"github.com/moeflux/moeflux-actor/server/fault"
)

// Standing is what the keys of a name have left when a request comes.
type Standing struct {
	requests, tokens allowance
	at               time.Time
}

// allowance is what is left of a limit.
type allowance struct {
	limit int // 0: there is none
	left  int
	reset time.Duration // until all of it is there again
}

// Tell sets the headers that say what is left, as clients of the request's API read them.
func (st *Standing) Tell(h http.Header, r *http.Request) {
	set := st.openAI
	if fault.IsMessages(r) {
		set = st.anthropic
	}
	set(h, "Requests", st.requests)
	set(h, "Tokens", st.tokens)
}

// openAI tells the time until a reset.
func (st *Standing) openAI(h http.Header, of string, a allowance) {
	if a.limit == 0 {
		return
	}
	h.Set("X-Ratelimit-Limit-"+of, strconv.Itoa(a.limit))
	h.Set("X-Ratelimit-Remaining-"+of, strconv.Itoa(max(0, a.left)))
	h.Set("X-Ratelimit-Reset-"+of, a.reset.Round(time.Millisecond).String())
}

// anthropic tells the moment of a reset, which is not before the second that it names.
func (st *Standing) anthropic(h http.Header, of string, a allowance) {
	if a.limit == 0 {
		return
	}
	reset := st.at.Add(a.reset + time.Second - 1).Truncate(time.Second)
	h.Set("Anthropic-Ratelimit-"+of+"-Limit", strconv.Itoa(a.limit))
	h.Set("Anthropic-Ratelimit-"+of+"-Remaining", strconv.Itoa(max(0, a.left)))
	h.Set("Anthropic-Ratelimit-"+of+"-Reset", reset.UTC().Format(time.RFC3339))
}
