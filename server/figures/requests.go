// Package figures counts what a server does, and has the figures of its engines read whenever
// somebody reads figures. names.go says what they are called; docs/figures.md defines them.
package figures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/visit"
)

// Requests counts requests and their answers. What engines count is in engineMetrics.
type Requests struct {
	names map[string]string // of keys, as attributes have them

	http, success, failed, cancelled           counter
	promptTokens, newTokens, queried, known    counter
	deviceTime, diskWait, diskBytes, picks     counter
	firstToken, tokenTime, whole, queue        histogram
	prefill, decode, prompts, answers, limits  histogram
	genDuration, genFirst, genPerToken, genUse histogram

	mu   sync.Mutex
	sets map[seriesKey]metric.MeasurementOption // of model and key
}

type counter = metric.Float64Counter
type histogram = metric.Float64Histogram

type seriesKey struct{ model, key string }

// instruments makes instruments, and keeps the first error.
type instruments struct {
	meter metric.Meter
	err   error
}

func (i *instruments) counter(name, unit, what string) counter {
	c, err := i.meter.Float64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	i.err = errors.Join(i.err, err)
	return c
}

func (i *instruments) histogram(name, unit, what string, buckets []float64) histogram {
	h, err := i.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(buckets...))
	i.err = errors.Join(i.err, err)
	return h
}

// Scope is the name of the instrumentation.
const Scope = "github.com/moeflux/moeflux-actor/server"

// New makes the instruments of requests. Keys are those that there are at first; of those
// that come later the figures say "other".
func New(meters metric.MeterProvider, keys []access.Key) (*Requests, error) {
	i := &instruments{meter: meters.Meter(Scope)}
	m := &Requests{names: make(map[string]string), sets: make(map[seriesKey]metric.MeasurementOption)}
	for _, k := range keys {
		if _, known := m.names[k.Name]; known {
			continue
		}
		if m.names[k.Name] = k.Name; len(m.names) > MostKeys {
			m.names[k.Name] = access.Others
		}
	}
	m.counters(i)
	m.histograms(i)
	if i.err != nil {
		return nil, fmt.Errorf("server: %w", i.err)
	}
	return m, nil
}

func (m *Requests) counters(i *instruments) {
	m.http = i.counter("moeflux.http_requests", "", "HTTP requests that were answered, by route and status code.")
	m.success = i.counter("moeflux.request_success", "", "Answers that ended in order, and why they ended.")
	m.failed = i.counter("moeflux.requests_failed", "", "Answers that ended with an error, by its code.")
	m.cancelled = i.counter("moeflux.requests_cancelled", "", "Answers that were cancelled: the client left, or the server stopped.")
	m.promptTokens = i.counter("moeflux.prompt_tokens", "", "Tokens of prompts, known ones included.")
	m.newTokens = i.counter("moeflux.generation_tokens", "", "Tokens written.")
	m.queried = i.counter("moeflux.prefix_cache_queries", "", "Tokens of prompts that were looked for among what is known.")
	m.known = i.counter("moeflux.prefix_cache_hits", "", "Tokens of prompts that were known and not read again.")
	m.deviceTime = i.counter("moeflux.request_device_time", "s", "Time of the device, as charged to answers.")
	m.diskWait = i.counter("moeflux.request_disk_wait", "s", "Time in which the device waited for experts, as charged to answers.")
	m.diskBytes = i.counter("moeflux.request_disk_bytes", "", "Bytes of experts from the disk, as charged to answers.")
	m.picks = i.counter("moeflux.request_expert_picks", "", "Picks of experts, as charged to answers, by where the expert was: hit, late or missed.")
}

func (m *Requests) histograms(i *instruments) {
	m.firstToken = i.histogram("moeflux.time_to_first_token", "s", "From the request to the first token.", firstTokenBuckets)
	m.tokenTime = i.histogram("moeflux.inter_token_latency", "s", "From one token to the next.", tokenTimeBuckets)
	m.whole = i.histogram("moeflux.e2e_request_latency", "s", "From the request to the end of its answer.", durationBuckets)
	m.queue = i.histogram("moeflux.request_queue_time", "s", "The time in which rows of a request waited for a step, of its prompt and of all its tokens.", durationBuckets)
	m.prefill = i.histogram("moeflux.request_prefill_time", "s", "From when the prompt was made to the first token, waiting included.", durationBuckets)
	m.decode = i.histogram("moeflux.request_decode_time", "s", "From the first token to the last.", durationBuckets)
	m.prompts = i.histogram("moeflux.request_prompt_tokens", "", "Tokens of a prompt.", tokenCountBuckets)
	m.answers = i.histogram("moeflux.request_generation_tokens", "", "Tokens of an answer.", tokenCountBuckets)
	m.limits = i.histogram("moeflux.request_max_num_generation_tokens", "", "Tokens that a request allowed its answer, where it set a limit.", tokenCountBuckets)

	m.genDuration = i.histogram("gen_ai.server.request.duration", "s", "Duration of a request.", durationBuckets)
	m.genFirst = i.histogram("gen_ai.server.time_to_first_token", "s", "Time to the first token of answers that ended in order.", firstTokenBuckets)
	m.genPerToken = i.histogram("gen_ai.server.time_per_output_token", "s", "Time of a token after the first one, the mean of an answer that ended in order.", tokenTimeBuckets)
	m.genUse = i.histogram("gen_ai.client.token.usage", "{token}", "Tokens of prompts (input) and answers (output).", tokenCountBuckets)
}

// series returns the attributes of a call's model and key.
func (m *Requests) series(t *visit.Tally) metric.MeasurementOption {
	k := seriesKey{t.Model, m.names[t.Visit.Key.Name]}
	if k.key == "" && t.Visit.Key.Name != "" {
		k.key = access.Others // a key that came later
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	set, ok := m.sets[k]
	if !ok {
		set = metric.WithAttributeSet(attribute.NewSet(attribute.String(attrModel, k.model), attribute.String(attrKey, k.key)))
		m.sets[k] = set
	}
	return set
}

// label is one attribute.
func label(name, value string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(name, value))
}

// Token counts a new token, which came so long after the one before it, or, if it is the first,
// after the request.
func (m *Requests) Token(t *visit.Tally, since time.Duration, first bool) {
	of, ctx := m.series(t), context.Background()
	m.newTokens.Add(ctx, 1, of)
	if first {
		m.firstToken.Record(ctx, since.Seconds(), of)
		return
	}
	m.tokenTime.Record(ctx, since.Seconds(), of)
}

// Answered counts an answer that has ended.
func (m *Requests) Answered(t *visit.Tally, c *visit.Answer) {
	of, ctx, took := m.series(t), context.Background(), time.Since(t.Began)
	m.whole.Record(ctx, took.Seconds(), of)
	if c.Read {
		m.promptTokens.Add(ctx, float64(c.Prompt), of)
		m.queried.Add(ctx, float64(c.Prompt), of)
		m.known.Add(ctx, float64(c.Reused), of)
		m.prompts.Record(ctx, float64(c.Prompt), of)
	}
	if limit := t.Call.Request.MaxTokens; limit > 0 {
		m.limits.Record(ctx, float64(limit), of)
	}
	if c.Tokens > 0 {
		m.prefill.Record(ctx, c.First.Sub(c.Prepared).Seconds(), of)
		m.decode.Record(ctx, c.Last.Sub(c.First).Seconds(), of)
	}
	m.answers.Record(ctx, float64(c.Tokens), of)
	failure := fault.EndingOf(c.Err)
	switch {
	case c.End != nil:
		m.success.Add(ctx, 1, of, label(attrFinish, string(c.End.Reason)))
		m.account(ctx, c, of)
	case failure.Cancelled:
		m.cancelled.Add(ctx, 1, of, label(attrReason, failure.Code))
	default:
		m.failed.Add(ctx, 1, of, label(attrCode, failure.Code))
	}
	m.conventions(ctx, t, c, took, failure.Code)
}

// account counts what the engine charged to an answer.
func (m *Requests) account(ctx context.Context, c *visit.Answer, of metric.MeasurementOption) {
	a := &c.End.Usage.Account
	m.queue.Record(ctx, time.Duration(a.QueueNS).Seconds(), of)
	m.deviceTime.Add(ctx, time.Duration(a.DeviceNS).Seconds(), of)
	m.diskWait.Add(ctx, time.Duration(a.DiskWaitNS).Seconds(), of)
	m.diskBytes.Add(ctx, float64(a.DiskBytes), of)
	m.picks.Add(ctx, float64(a.Hit), of, label(attrFound, "hit"))
	m.picks.Add(ctx, float64(a.Late), of, label(attrFound, "late"))
	m.picks.Add(ctx, float64(a.Missed), of, label(attrFound, "missed"))
}

// conventions counts an answer as the semantic conventions have it.
func (m *Requests) conventions(ctx context.Context, t *visit.Tally, c *visit.Answer, took time.Duration, code string) {
	operation := "text_completion"
	if t.Call.Chat {
		operation = "chat"
	}
	attrs := []attribute.KeyValue{
		attribute.String(attrOperation, operation), attribute.String(attrProvider, "moeflux"),
		attribute.String(attrRequestModel, t.Model), attribute.String(attrResponseModel, t.Model),
	}
	of := metric.WithAttributeSet(attribute.NewSet(slices.Clone(attrs)...))
	if c.End == nil {
		m.genDuration.Record(ctx, took.Seconds(), of, label(attrError, code))
		return
	}
	m.genDuration.Record(ctx, took.Seconds(), of)
	if c.Tokens > 0 {
		m.genFirst.Record(ctx, c.First.Sub(t.Began).Seconds(), of)
	}
	if c.Tokens > 1 {
		m.genPerToken.Record(ctx, c.Last.Sub(c.First).Seconds()/float64(c.Tokens-1), of)
	}
	m.genUse.Record(ctx, float64(c.Prompt), of, label(attrTokenType, "input"))
	m.genUse.Record(ctx, float64(c.Tokens), of, label(attrTokenType, "output"))
}

// Visited counts an HTTP request.
func (m *Requests) Visited(route string, status int) {
	m.http.Add(context.Background(), 1, metric.WithAttributes(attribute.String(attrRoute, route), attribute.String(attrCode, strconv.Itoa(status))))
}
