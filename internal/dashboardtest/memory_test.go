package dashboardtest

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// memory is the figures of several looks, as Prometheus would keep them.
type memory map[string]*series

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// look reads GET /metrics as the figures of a moment.
func (m memory) look(t *testing.T, url string, at time.Time) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range families {
		for _, one := range f.GetMetric() {
			m.family(name, one, at)
		}
	}
}

// family adds what a family has of one set of labels.
func (m memory) family(name string, one *dto.Metric, at time.Time) {
	switch h := one.Histogram; {
	case h != nil:
		for _, b := range h.GetBucket() {
			m.add(name+"_bucket", one, at, float64(b.GetCumulativeCount()), "le", strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
		}
		m.add(name+"_count", one, at, float64(h.GetSampleCount()))
		m.add(name+"_sum", one, at, h.GetSampleSum())
	case one.Counter != nil:
		m.add(name, one, at, one.Counter.GetValue())
	case one.Gauge != nil:
		m.add(name, one, at, one.Gauge.GetValue())
	}
}

func (m memory) add(name string, one *dto.Metric, at time.Time, v float64, more ...string) {
	b := labels.NewBuilder(labels.FromStrings(append([]string{labels.MetricName, name}, more...)...))
	for _, l := range one.GetLabel() {
		b.Set(l.GetName(), l.GetValue())
	}
	all := b.Labels()
	s := m[all.String()]
	if s == nil {
		s = &series{labels: all}
		m[all.String()] = s
	}
	s.samples = append(s.samples, sample{at.UnixMilli(), v})
}

// Querier looks for series.
func (m memory) Querier(int64, int64) (storage.Querier, error) { return querier{m}, nil }

type querier struct{ m memory }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, wanted ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range q.m {
		all := true
		for _, w := range wanted {
			all = all && w.Matches(s.labels.Get(w.Name))
		}
		if all {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	return &set{of: found, at: -1}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

// set is a list of series.
type set struct {
	of []storage.Series
	at int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.of) }
func (s *set) At() storage.Series                { return s.of[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// sample is a figure at a moment, in milliseconds.
type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
