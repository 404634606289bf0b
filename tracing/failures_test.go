package tracing

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/codes"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The span of a request says how it ended, and with what error, whether the error comes before its
// record is read, after it, or not at all, and whether the request came into a step.
func TestOutcomes(t *testing.T) {
	broken := fmt.Errorf("reading layer 3: %w", errors.New("the disk is gone"))
	for _, c := range []struct {
		outcome record.Outcome
		err     error
		kind    string // error.type
		status  string
	}{
		{record.Answered, nil, "", ""},
		{record.Cancelled, context.Canceled, "cancelled", "context canceled"},
		{record.Cancelled, context.DeadlineExceeded, "timeout", "context deadline exceeded"},
		{record.Refused, errors.New("no room"), "*errors.errorString", "no room"},
		{record.Failed, broken, "*fmt.wrapError", "reading layer 3: the disk is gone"},
		{record.Cancelled, nil, "cancelled", "cancelled"},
		{record.Refused, nil, "refused", "refused"},
		{record.Failed, nil, "failed", "failed"},
	} {
		for _, stepped := range []bool{false, true} {
			for _, late := range []bool{false, true} {
				r := newRig(t, 1<<20)
				at := int64(5)
				if stepped {
					step := r.form(1, 7)
					at = r.run(step, 1)
					r.log.StepsEnded.Add(record.StepEnded{Step: step, EndedNS: at * ms})
				}
				q := record.Request{Request: 7, Seq: 7, ArrivedNS: 1, EndedNS: at * ms, Outcome: c.outcome}
				q.TraceID, q.SpanID = caller(7)
				r.log.Requests.Add(q)
				tell := func() {
					if c.err != nil {
						r.e.Failures.Tell(7, 7, c.err)
					}
				}
				if late {
					r.e.Poll(at*ms+1, false)
					tell()
				} else {
					tell()
				}
				r.e.Poll(at*ms+settleNS, false)
				r.count(map[string]int{SpanEval: 1})
				s := r.named(SpanEval)[0]
				kind, _ := value(s, KeyError).(string)
				if value(s, KeyOutcome) != outcomes[c.outcome] || kind != c.kind || s.Status.Description != c.status || (s.Status.Code == codes.Error) != (c.status != "") {
					t.Errorf("%s of %v, in a step %v, late %v: the span has outcome %v, error %q and status %+v",
						outcomes[c.outcome], c.err, stepped, late, value(s, KeyOutcome), kind, s.Status)
				}
				if (len(s.Events) == 1) != (c.err != nil) {
					t.Errorf("%s of %v: events %+v", outcomes[c.outcome], c.err, s.Events)
				}
			}
		}
	}
}

// Errors of requests that nobody traces do not pile up, nor do those of requests that nobody hears
// of.
func TestFailuresAreBounded(t *testing.T) {
	r := newRig(t, 1<<20)
	for i := range uint64(10) {
		r.log.Requests.Add(record.Request{Request: i, Seq: 1, EndedNS: ms, Outcome: record.Failed})
		r.e.Failures.Tell(i, 1, errors.New("no"))
	}
	r.e.Poll(2*ms, false)
	if n := len(r.e.Failures.of); n != 0 {
		t.Errorf("%d errors are kept of requests that nobody traces", n)
	}
	for i := range uint64(2 * mostFailures) {
		r.e.Failures.Tell(i, 2, errors.New("no"))
	}
	if n := len(r.e.Failures.of); n != mostFailures {
		t.Errorf("%d errors are kept, want %d", n, mostFailures)
	}
}
