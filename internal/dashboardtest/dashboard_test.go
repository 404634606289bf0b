package dashboardtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// dashboard is what the test reads of the file.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct{ List []struct{ Query string } }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// serve serves the demo model, whose experts stream, and one that fails.
func serve(t *testing.T) string {
	t.Helper()
	dir, err := moeflux.DemoDir(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := moeflux.Options{Threads: 1}
	o.Config.ExpertIO, o.Config.ExpertMemory = "buffered", 3<<20
	m, err := moeflux.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	counts, err := export.NewMetrics(export.MetricsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	broken := &scripted.Model{Say: func(ctx context.Context, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			if r.Prompt == "wait" {
				<-ctx.Done()
				yield(moeflux.Event{}, ctx.Err())
				return
			}
			yield(moeflux.Event{}, errors.New("broken"))
		}
	}}
	s, err := server.New(server.Options{
		Models: []server.Served{{Name: "demo", Model: m, Engine: func() server.Engine { return m.Engine() }}, {Name: "broken", Model: broken}},
		Meters: counts.Provider(), Figures: counts,
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return web.URL
}

// post asks for a text and returns how many tokens were written.
func post(t *testing.T, ctx context.Context, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			t.Fatal(err)
		}
		return 0
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Usage struct {
			Tokens int `json:"completion_tokens"`
		}
	}
	_ = json.Unmarshal(raw, &reply)
	return reply.Usage.Tokens
}

// work has every figure of the dashboard move, and returns how many tokens were written.
func work(t *testing.T, url string) int {
	t.Helper()
	tokens := 0
	for range 2 {
		tokens += post(t, t.Context(), url, `{"model":"demo","prompt":"package main\n\nimport (\n\t\"fmt\"\n","max_tokens":20,"temperature":0}`)
	}
	post(t, t.Context(), url, `{"model":"broken","prompt":"x"}`)
	gone, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	post(t, gone, url, `{"model":"broken","prompt":"wait"}`)
	return tokens
}

// Every query of the dashboard is one that Prometheus understands, and finds something; and what
// some find is what happened.
func TestQueries(t *testing.T) {
	url, d := serve(t), readDashboard(t)
	work(t, url) // so that there is something to grow
	cancelled := func() bool {
		m := memory{}
		m.look(t, url, time.Now())
		for name := range m {
			if strings.Contains(name, "moeflux_requests_cancelled_total") {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(20 * time.Second); !cancelled(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nobody was found to have left")
		}
	}
	figures, from := memory{}, time.Unix(1_800_000_000, 0)
	to := from.Add(time.Minute)
	figures.look(t, url, from)
	tokens := work(t, url)
	figures.look(t, url, to)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	ask := func(query string) promql.Vector {
		// The window of a rate is open at its beginning.
		query = strings.NewReplacer("$__rate_interval", "60001ms", `"$model"`, `".*"`, `"$key"`, `".*"`).Replace(query)
		q, err := engine.NewInstantQuery(t.Context(), figures, nil, query, to)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			return nil
		}
		defer q.Close()
		v, err := q.Exec(t.Context()).Vector()
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		return append(promql.Vector(nil), v...)
	}
	queries := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			queries++
			found := ask(target.Expr)
			if len(found) == 0 {
				t.Errorf("%s: %s finds nothing", p.Title, target.Expr)
			}
			for _, s := range found {
				if math.IsNaN(s.F) || s.F < 0 {
					t.Errorf("%s: %s is %v", p.Title, target.Expr, s.F)
				}
			}
		}
	}
	if queries < 40 {
		t.Errorf("only %d queries were looked at", queries)
	}
	for _, v := range d.Templating.List {
		if m := regexp.MustCompile(`^label_values\((\w+), \w+\)$`).FindStringSubmatch(v.Query); m != nil && len(ask(m[1])) == 0 {
			t.Errorf("the variable %s has no values", v.Query)
		}
	}
	for title, want := range map[string]float64{"Tokens a second": float64(tokens) / 60, "Answers a second": 2. / 60} {
		found := 0.
		for _, p := range d.Panels {
			if p.Title == title {
				last := p.Targets[0]
				if title == "Tokens a second" {
					last = p.Targets[1] // written
				}
				for _, s := range ask(last.Expr) {
					found += s.F
				}
			}
		}
		if math.Abs(found-want) > 1e-4*want {
			t.Errorf("%s: %v, want %v", title, found, want)
		}
	}
}
