package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/figures"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/tracing/export"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// figuresOf reads GET /metrics: every series of ours, as name{label="value",…}. Of a histogram
// there are the count, the sum and the buckets that have something.
func figuresOf(t *testing.T, h http.Handler, headers ...string) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
	r.RemoteAddr, r.Host = "127.0.0.1:5", "localhost"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body.String())
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for name, f := range families {
		if !strings.HasPrefix(name, "moeflux_") && !strings.HasPrefix(name, "gen_ai_") {
			continue
		}
		if f.GetHelp() == "" {
			t.Errorf("%s says nothing of what it is", name)
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			slices.Sort(labels)
			of := "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.Histogram != nil:
				all[name+"_count"+of], all[name+"_sum"+of] = float64(m.Histogram.GetSampleCount()), m.Histogram.GetSampleSum()
				before := uint64(0)
				for _, b := range m.Histogram.GetBucket() {
					if n := b.GetCumulativeCount(); n > before {
						all[fmt.Sprintf("%s_bucket%s le %v", name, of, b.GetUpperBound())] = float64(n - before)
						before = n
					}
				}
			case m.Counter != nil:
				all[name+of] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[name+of] = m.Gauge.GetValue()
			}
		}
	}
	return all
}

// compare wants exactly these series, and these values.
func compare(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			t.Errorf("nothing is known of %s, which is %v", name, got[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[name]; !ok || math.Abs(g-want[name]) > 1e-9*math.Abs(want[name]) {
			t.Errorf("%s is %v (%v), want %v", name, g, ok, want[name])
		}
	}
}

// counted makes a server whose figures can be read.
func counted(t *testing.T, m *scripted.Model, change ...func(*Options)) *Server {
	t.Helper()
	counts, err := export.NewMetrics(export.MetricsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Models: []models.Served{{Name: "demo", Aliases: []string{"gpt-4o"}, Model: m, Exactness: "int8"}}, Meters: counts.Provider(), Figures: counts}
	for _, c := range change {
		c(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a body past the network, so that time may be a test's.
func ask(ctx context.Context, s http.Handler, path, body string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "POST", path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	defer func() {
		if reason := recover(); reason != nil && reason != http.ErrAbortHandler {
			panic(reason)
		}
	}()
	s.ServeHTTP(w, r)
	return w
}

// timed is a script whose events come at known times after the request: the prompt after 100 ms,
// the first token after 3 s, and one each 200 ms.
func timed(ctx context.Context, r moeflux.Request) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		pause := func(d time.Duration) bool {
			select {
			case <-ctx.Done():
				yield(moeflux.Event{}, context.Cause(ctx))
				return false
			case <-time.After(d):
				return true
			}
		}
		if !pause(100*time.Millisecond) || !yield(moeflux.Event{Prompt: &moeflux.Prompt{IDs: make([]int32, 300)}}, nil) {
			return
		}
		if r.Prompt == "fail" {
			yield(moeflux.Event{}, errors.New("a secret of the engine"))
			return
		}
		if !pause(2900*time.Millisecond) || !yield(moeflux.Event{Read: &moeflux.Read{Reused: 120}}, nil) {
			return
		}
		for i := range 5 {
			if i > 0 && !pause(200*time.Millisecond) {
				return
			}
			if !yield(moeflux.Event{Text: "word ", Raw: "word ", Token: &moeflux.Token{ID: int32(i)}}, nil) {
				return
			}
		}
		if !yield(moeflux.Event{Text: "held back"}, nil) {
			return
		}
		u := moeflux.Usage{PromptTokens: 300, ReusedTokens: 120, NewTokens: 5}
		u.Account.QueueNS, u.Account.DeviceNS, u.Account.DiskWaitNS, u.Account.DiskBytes = 700e6, 1500e6, 250e6, 1<<20
		u.Account.Hit, u.Account.Late, u.Account.Missed = 70, 5, 11
		yield(moeflux.Event{End: &moeflux.End{Reason: moeflux.StopEOS, Message: moeflux.Message{Role: moeflux.Assistant, Content: "word"}, Usage: u}}, nil)
	}
}

// Every figure of requests says what requests did, to the nanosecond.
func TestFiguresOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := counted(t, &scripted.Model{Say: timed}, func(o *Options) {
			o.Keys = []access.Key{{Secret: "sk-first-first", Name: "me"}, {Secret: "sk-admin-admin", Name: "root", Admin: true}}
		})
		mine := []string{"X-Api-Key", "sk-first-first"}
		const text = `{"model":"gpt-4o","prompt":"go","max_tokens":100}`
		w := ask(t.Context(), s, "/v1/completions", text, mine...)
		if w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		// A stream whose client leaves after a second, when it has no token yet.
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		ask(gone, s, "/v1/chat/completions", `{"model":"demo","stream":true,"messages":[{"role":"user","content":"x"}]}`, mine...)
		// One that fails, and what comes to no answer.
		ask(t.Context(), s, "/v1/completions", `{"prompt":"fail"}`, mine...)
		ask(t.Context(), s, "/v1/completions", `{"prompt":5}`, mine...)
		ask(t.Context(), s, "/v1/completions", text, "X-Api-Key", "sk-wrong-wrong")
		ask(t.Context(), s, "/v1/nowhere", text, mine...)
		// Two answers to one request, under way now: one second on.
		under := make(chan struct{})
		go func() {
			defer close(under)
			ask(t.Context(), s, "/v1/completions", `{"prompt":"go","n":2}`, mine...)
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		const me = `{key="me",model_name="demo"}`
		gen := func(rest string) string {
			return `{` + strings.ReplaceAll(rest, "ERR", `error_type="`) + `gen_ai_operation_name="text_completion",gen_ai_provider_name="moeflux",gen_ai_request_model="demo",gen_ai_response_model="demo"}`
		}
		chat := strings.ReplaceAll(gen(`error_type="client_left",`), "text_completion", "chat")
		failed := gen(`error_type="internal_error",`)
		want := map[string]float64{
			`moeflux_http_requests_total{code="200",route="/v1/completions"}`:      1,
			`moeflux_http_requests_total{code="500",route="/v1/completions"}`:      1,
			`moeflux_http_requests_total{code="400",route="/v1/completions"}`:      1,
			`moeflux_http_requests_total{code="200",route="/v1/chat/completions"}`: 1,
			`moeflux_http_requests_total{code="401",route="none"}`:                 1,
			`moeflux_http_requests_total{code="404",route="none"}`:                 1,

			`moeflux_num_requests_running{model_name="demo"}`: 2,
			`moeflux_model_loaded{model_name="demo"}`:         1,
			`moeflux_key_weight{key="me"}`:                    1, `moeflux_key_weight{key="root"}`: 1,

			`moeflux_request_success_total{finished_reason="eos",key="me",model_name="demo"}`:   1,
			`moeflux_requests_cancelled_total{key="me",model_name="demo",reason="client_left"}`: 1,
			`moeflux_requests_failed_total{code="internal_error",key="me",model_name="demo"}`:   1,
			`moeflux_prompt_tokens_total` + me:                                                  300,
			`moeflux_generation_tokens_total` + me:                                              5,
			`moeflux_prefix_cache_queries_total` + me:                                           300,
			`moeflux_prefix_cache_hits_total` + me:                                              120,
			`moeflux_request_device_time_seconds_total` + me:                                    1.5,
			`moeflux_request_disk_wait_seconds_total` + me:                                      .25,
			`moeflux_request_disk_bytes_total` + me:                                             1 << 20,
			`moeflux_request_expert_picks_total{found="hit",key="me",model_name="demo"}`:        70,
			`moeflux_request_expert_picks_total{found="late",key="me",model_name="demo"}`:       5,
			`moeflux_request_expert_picks_total{found="missed",key="me",model_name="demo"}`:     11,
			`moeflux_time_to_first_token_seconds_count` + me:                                    1,
			`moeflux_time_to_first_token_seconds_sum` + me:                                      3,
			`moeflux_time_to_first_token_seconds_bucket` + me + ` le 5`:                         1,
			`moeflux_inter_token_latency_seconds_count` + me:                                    4,
			`moeflux_inter_token_latency_seconds_sum` + me:                                      .8,
			`moeflux_inter_token_latency_seconds_bucket` + me + ` le 0.2`:                       4,
			`moeflux_e2e_request_latency_seconds_count` + me:                                    3,
			`moeflux_e2e_request_latency_seconds_sum` + me:                                      3.8 + 1 + .1,
			`moeflux_e2e_request_latency_seconds_bucket` + me + ` le 5.12`:                      1,
			`moeflux_e2e_request_latency_seconds_bucket` + me + ` le 1.28`:                      1,
			`moeflux_e2e_request_latency_seconds_bucket` + me + ` le 0.16`:                      1,
			`moeflux_request_queue_time_seconds_count` + me:                                     1,
			`moeflux_request_queue_time_seconds_sum` + me:                                       .7,
			`moeflux_request_queue_time_seconds_bucket` + me + ` le 1.28`:                       1,
			`moeflux_request_prefill_time_seconds_count` + me:                                   1,
			`moeflux_request_prefill_time_seconds_sum` + me:                                     2.9,
			`moeflux_request_prefill_time_seconds_bucket` + me + ` le 5.12`:                     1,
			`moeflux_request_decode_time_seconds_count` + me:                                    1,
			`moeflux_request_decode_time_seconds_sum` + me:                                      .8,
			`moeflux_request_decode_time_seconds_bucket` + me + ` le 1.28`:                      1,
			`moeflux_request_prompt_tokens_count` + me:                                          1,
			`moeflux_request_prompt_tokens_sum` + me:                                            300,
			`moeflux_request_prompt_tokens_bucket` + me + ` le 1024`:                            1,
			`moeflux_request_generation_tokens_count` + me:                                      3,
			`moeflux_request_generation_tokens_sum` + me:                                        5,
			`moeflux_request_generation_tokens_bucket` + me + ` le 1`:                           2,
			`moeflux_request_generation_tokens_bucket` + me + ` le 16`:                          1,
			`moeflux_request_max_num_generation_tokens_count` + me:                              2, // of texts: 16 unless said
			`moeflux_request_max_num_generation_tokens_sum` + me:                                116,
			`moeflux_request_max_num_generation_tokens_bucket` + me + ` le 16`:                  1,
			`moeflux_request_max_num_generation_tokens_bucket` + me + ` le 256`:                 1,
			`gen_ai_server_request_duration_seconds_count` + gen(""):                            1,
			`gen_ai_server_request_duration_seconds_sum` + gen(""):                              3.8,
			`gen_ai_server_request_duration_seconds_bucket` + gen("") + ` le 5.12`:              1,
			`gen_ai_server_request_duration_seconds_count` + chat:                               1,
			`gen_ai_server_request_duration_seconds_sum` + chat:                                 1,
			`gen_ai_server_request_duration_seconds_bucket` + chat + ` le 1.28`:                 1,
			`gen_ai_server_request_duration_seconds_count` + failed:                             1,
			`gen_ai_server_request_duration_seconds_sum` + failed:                               .1,
			`gen_ai_server_request_duration_seconds_bucket` + failed + ` le 0.16`:               1,
			`gen_ai_server_time_to_first_token_seconds_count` + gen(""):                         1,
			`gen_ai_server_time_to_first_token_seconds_sum` + gen(""):                           3,
			`gen_ai_server_time_to_first_token_seconds_bucket` + gen("") + ` le 5`:              1,
			`gen_ai_server_time_per_output_token_seconds_count` + gen(""):                       1,
			`gen_ai_server_time_per_output_token_seconds_sum` + gen(""):                         .2,
			`gen_ai_server_time_per_output_token_seconds_bucket` + gen("") + ` le 0.2`:          1,
		}
		for kind, n := range map[string]float64{"input": 300, "output": 5} {
			of := strings.TrimSuffix(gen(""), "}") + `,gen_ai_token_type="` + kind + `"}`
			want["gen_ai_client_token_usage_count"+of], want["gen_ai_client_token_usage_sum"+of] = 1, n
			want["gen_ai_client_token_usage_bucket"+of+map[string]string{"input": " le 1024", "output": " le 16"}[kind]] = 1
		}
		compare(t, figuresOf(t, s, "X-Api-Key", "sk-admin-admin"), want)
		<-under
		again := figuresOf(t, s, "X-Api-Key", "sk-admin-admin")
		for name, n := range map[string]float64{
			`moeflux_num_requests_running{model_name="demo"}`:                                 0,
			`moeflux_generation_tokens_total` + me:                                            15,
			`moeflux_http_requests_total{code="200",route="/metrics"}`:                        1,
			`moeflux_request_success_total{finished_reason="eos",key="me",model_name="demo"}`: 3,
		} {
			if again[name] != n {
				t.Errorf("then %s is %v, want %v", name, again[name], n)
			}
		}
	})
}

// A server that stops says that it did, and not that clients left.
func TestFiguresOfDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := counted(t, &scripted.Model{Say: timed})
		go ask(t.Context(), s, "/v1/completions", `{"prompt":"go"}`)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Drain(ctx)
		synctest.Wait()
		got := figuresOf(t, s)
		if n := got[`moeflux_requests_cancelled_total{key="",model_name="demo",reason="stopping"}`]; n != 1 {
			t.Errorf("%v answers are said to have ended because the server stopped: %v", n, got)
		}
	})
}

// counting is an engine with figures of a test's.
type counting struct {
	stats moeflux.Stats
	log   *record.Log
	err   error
}

func (c *counting) Info() moeflux.Info      { return moeflux.Info{RingDepth: 3, SlotBytes: 1000} }
func (c *counting) Records() *record.Log    { return c.log }
func (c *counting) RecordMeta() record.Meta { return record.Meta{} }
func (c *counting) Stats(context.Context) (*moeflux.Stats, error) {
	return &c.stats, c.err
}

// Every figure of an engine is the one that its name and its help say. Each has a value of its own.
func TestFiguresOfEngines(t *testing.T) {
	e := &counting{log: record.NewLog(1 << 20)}
	s := &e.stats
	s.Steps, s.Rows, s.FailedSteps, s.Slots, s.SlotsUsed, s.RingHighWater, s.PagesUsed, s.PagesMax = 101, 102, 103, 104, 105, 106, 30, 120
	s.Admission.Waiting, s.Admission.Sequences, s.Admission.TurnedAway = 107, 108, 109
	s.Reads.Ended, s.Reads.Failed, s.Reads.Retried, s.Reads.Corrupt, s.Reads.Queued, s.Reads.Running, s.Reads.BusyTime = 110, 111, 112, 113, 14, 2, 114*time.Second
	s.ComputeNS, s.DiskWaitNS, s.States.Evicted, s.States.Parked, s.Tracing.StepsLost = 115e9, 116e9, 117, 118, 119
	s.States.Stored, s.States.Recalled, s.States.StoredDisk = 120, 121, 122
	s.Hosts = []moeflux.HostStats{
		{Addr: "10.0.0.2:8090", Up: true, Asks: 131, Failed: 132, Hedges: 140, Uses: 133, BytesOut: 134, BytesIn: 135, Answered: 136 * time.Second, Waited: 137 * time.Second, Read: 138 * time.Second, Computed: 139 * time.Second},
		{Addr: "10.0.0.3:8090", Asks: 141},
	}
	s.Layers = []moeflux.LayerStats{
		{Hits: 1000, Misses: 2000, Away: 9000, BytesRead: 3000, Evictions: 4000, PrefetchIssued: 5000, PrefetchHit: 6000, PrefetchLate: 7000, PrefetchWasted: 8000},
		{Hits: 1, Misses: 2, Away: 9, BytesRead: 3, Evictions: 4, PrefetchIssued: 5, PrefetchHit: 6, PrefetchLate: 7, PrefetchWasted: 8},
	}
	for i := range 3 {
		e.log.Uses.Add(record.Use{Step: uint64(i)})
	}
	loaded := true
	srv := counted(t, new(scripted.Model), func(o *Options) {
		o.Models[0].Engine = func() models.Engine {
			if !loaded {
				return nil
			}
			return e
		}
	})
	got, want := figuresOf(t, srv), map[string]float64{}
	for name, n := range map[string]float64{
		"num_requests_waiting": 107, "num_requests_running": 0, "model_loaded": 1, "sequences": 108, "kv_cache_usage_perc": .25, "engine_steps_total": 101, "engine_rows_total": 102,
		"engine_steps_failed_total": 103, "ring_depth": 3, "ring_high_water": 106, "slots": 104, "slots_in_use": 105, "expert_hits_total": 1001, "expert_misses_total": 2002, "expert_away_total": 9009,
		"expert_bytes_read_total": 3003, "expert_evictions_total": 4004, "prefetch_issued_total": 5005, "prefetch_hit_total": 6006, "prefetch_late_total": 7007,
		"prefetch_wasted_total": 8008, "reads_total": 110, "reads_failed_total": 111, "reads_retried_total": 112, "reads_corrupt_total": 113, "reads_in_flight": 16,
		"read_bytes_in_flight": 16000, "disk_busy_seconds_total": 114, "device_busy_seconds_total": 115, "device_disk_wait_seconds_total": 116, "states_evicted_total": 117,
		"states_parked": 118, "trace_steps_lost_total": 119, "requests_turned_away_total": 109,
		"states_stored_total": 120, "states_recalled_total": 121, "states_disk_bytes": 122,
	} {
		want["moeflux_"+name+`{model_name="demo"}`] = n
	}
	for name, n := range map[string][2]float64{
		"up": {1, 0}, "asks_total": {131, 141}, "asks_failed_total": {132, 0}, "asks_hedged_total": {140, 0}, "experts_total": {133, 0}, "bytes_sent_total": {134, 0}, "bytes_received_total": {135, 0},
		"answer_seconds_total": {136, 0}, "wait_seconds_total": {137, 0}, "read_seconds_total": {138, 0}, "compute_seconds_total": {139, 0},
	} {
		for i := range s.Hosts {
			want[fmt.Sprintf(`moeflux_host_%s{host=%q,model_name="demo"}`, name, s.Hosts[i].Addr)] = n[i]
		}
	}
	for table, n := range e.log.Totals() {
		want[fmt.Sprintf(`moeflux_records_total{model_name="demo",table=%q}`, table)] = float64(n)
	}
	if want[`moeflux_records_total{model_name="demo",table="uses"}`] != 3 {
		t.Error("the log does not have its records")
	}
	compare(t, got, want)
	// A model that is not in memory is not asked, and one that does not answer hides nothing else.
	loaded = false
	got = figuresOf(t, srv)
	if got[`moeflux_model_loaded{model_name="demo"}`] != 0 || len(got) > 4 {
		t.Errorf("of a model that is not in memory: %v", got)
	}
	loaded, e.err = true, errors.New("it hangs")
	if got = figuresOf(t, srv); got[`moeflux_model_loaded{model_name="demo"}`] != 1 || got[`moeflux_records_total{model_name="demo",table="uses"}`] != 3 {
		t.Errorf("of an engine that does not answer: %v", got)
	}
}

// What clients send never becomes a label: neither names of models, nor paths, nor keys.
func TestLabelsAreOurs(t *testing.T) {
	var keys []access.Key
	for i := range figures.MostKeys + 50 {
		keys = append(keys, access.Key{Secret: fmt.Sprintf("sk-secret-%d", i), Name: fmt.Sprintf("name-%d", i), Weight: i % 5})
	}
	keys = append(keys, access.Key{Secret: "sk-admin-admin", Name: "name-0", Admin: true})
	s := counted(t, new(scripted.Model), func(o *Options) { o.Keys = keys })
	for i := range figures.MostKeys + 50 {
		key := fmt.Sprintf("sk-secret-%d", i)
		ask(t.Context(), s, "/v1/completions", `{"prompt":"private words","user":"somebody"}`, "X-Api-Key", key, "X-Request-Id", "mine", "User-Agent", "curl")
		ask(t.Context(), s, "/v1/completions", `{"model":"invented","prompt":"x"}`, "X-Api-Key", key)
		ask(t.Context(), s, "/v1/invented/"+key, `{}`, "X-Api-Key", "sk-invented-key")
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer sk-admin-admin")
	s.ServeHTTP(w, r)
	for _, word := range []string{"invented", "private", "somebody", "mine", "curl", "sk-"} {
		if bytes.Contains(w.Body.Bytes(), []byte(word)) {
			t.Errorf("the figures have %q", word)
		}
	}
	if n := strings.Count(w.Body.String(), "\nmoeflux_generation_tokens_total{"); n != figures.MostKeys+1 {
		t.Errorf("%d keys are told apart", n)
	}
	if !strings.Contains(w.Body.String(), `moeflux_generation_tokens_total{key="other",model_name="demo"} 100`) {
		t.Error("keys beyond the bound are not counted together")
	}
	if n := strings.Count(w.Body.String(), "\nmoeflux_key_weight{"); n != figures.MostKeys {
		t.Errorf("the weights of %d keys are told", n)
	}
	for _, want := range []string{`{key="name-4"} 4`, `{key="name-5"} 1`} {
		if !strings.Contains(w.Body.String(), "moeflux_key_weight"+want) {
			t.Errorf("the figures have no weight %s", want)
		}
	}
}

// Who may read figures: an admin, and where there is none, who is on the machine itself.
func TestInsiders(t *testing.T) {
	plain, admin := access.Key{Secret: "sk-plain-plain", Name: "a"}, access.Key{Secret: "sk-admin-admin", Name: "b", Admin: true}
	for _, tc := range []struct {
		name    string
		keys    []access.Key
		from    string
		headers []string
		want    int
	}{
		{"no keys", nil, "127.0.0.1:9", nil, 200},
		{"no keys, IPv6", nil, "[::1]:9", nil, 200},
		{"no keys, from elsewhere", nil, "10.0.0.7:9", nil, 403},
		{"no keys, by a proxy", nil, "127.0.0.1:9", []string{"X-Forwarded-For", "10.0.0.7"}, 403},
		{"no keys, by a proxy of the standard", nil, "127.0.0.1:9", []string{"Forwarded", "for=10.0.0.7"}, 403},
		{"no admin, from here", []access.Key{plain}, "127.0.0.1:9", nil, 200},
		{"no admin, from elsewhere", []access.Key{plain}, "10.0.0.7:9", []string{"X-Api-Key", plain.Secret}, 403},
		{"a socket without addresses", nil, "@", nil, 403},
		{"admin", []access.Key{plain, admin}, "10.0.0.7:9", []string{"X-Api-Key", admin.Secret}, 200},
		{"not the admin", []access.Key{plain, admin}, "127.0.0.1:9", []string{"X-Api-Key", plain.Secret}, 403},
		{"wrong key", []access.Key{plain, admin}, "127.0.0.1:9", []string{"X-Api-Key", "sk-wrong-wrong"}, 401},
		{"no key", []access.Key{plain, admin}, "127.0.0.1:9", nil, 401},
	} {
		s := counted(t, new(scripted.Model), func(o *Options) { o.Keys = tc.keys })
		for _, path := range []string{"/metrics", "/%6Detrics", "/debug/records"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.RemoteAddr, r.Host = tc.from, "localhost"
			for i := 0; i < len(tc.headers); i += 2 {
				r.Header.Set(tc.headers[i], tc.headers[i+1])
			}
			if s.ServeHTTP(w, r); w.Code != tc.want && !(tc.want == 200 && w.Code == http.StatusConflict) { // without an engine
				t.Errorf("%s, %s: %d %s", tc.name, path, w.Code, w.Body)
			}
		}
	}
}
