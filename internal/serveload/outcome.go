package serveload

import (
	"strings"
	"time"
)

// kind is how a request ended.
type kind int

const (
	answered kind = iota // wholly, and as alone
	left                 // the client has left
	refused              // as it must be
	busy                 // 429 or 503, or an error that says so in a stream
	closed               // the server hung up on who did not say what it wants
	wrong                // not as alone
	lost                 // neither an answer nor an error
	failed               // with an error that it should not have
	held                 // a connection that should be closed
	kinds
)

var kindNames = [kinds]string{"answered", "left", "refused", "busy", "closed", "WRONG", "LOST", "FAILED", "HELD"}

// outcome is what came of one request.
type outcome struct {
	kind    kind
	detail  string        // of what should not be
	tokens  int           // that the server says it computed
	first   time.Duration // of a patient stream: until the first text
	silence time.Duration // of a patient stream: the longest
}

// judge says what came of a question to which there is an answer, or err.
func judge(q *question, a *answer, err error) outcome {
	switch {
	case err != nil:
		return outcome{kind: lost, detail: err.Error()}
	case a.fault != "":
		for _, word := range []string{"429 ", "503 ", "queue_full", "overloaded", "rate_limit"} {
			if strings.Contains(a.fault, word) {
				return outcome{kind: busy, detail: a.fault}
			}
		}
		return outcome{kind: failed, detail: a.fault}
	}
	if err := q.check(a.text.String(), true); err != nil {
		return outcome{kind: wrong, detail: err.Error()}
	}
	return outcome{kind: answered, tokens: a.tokens}
}
