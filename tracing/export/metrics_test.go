package export

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// three makes a Metrics with a counter that has counted three.
func three(t *testing.T, c MetricsConfig) *Metrics {
	t.Helper()
	m, err := NewMetrics(c)
	if err != nil {
		t.Fatal(err)
	}
	n, err := m.Provider().Meter("test").Int64Counter("moeflux.things", metric.WithDescription("Things that came."))
	if err != nil {
		t.Fatal(err)
	}
	n.Add(t.Context(), 3)
	return m
}

func text(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	return w.Body.String()
}

func TestMetricsText(t *testing.T) {
	m := three(t, MetricsConfig{})
	defer m.Shutdown(t.Context())
	got := text(t, m)
	for _, line := range []string{"# HELP moeflux_things_total Things that came.", "moeflux_things_total 3", "go_goroutines ", `service_name="moeflux-actor"`} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is missing in\n%s", line, got)
		}
	}
}

// Figures go to the collector that the environment names, at intervals and at the end, and to none
// if it does not want that.
func TestMetricsOTLP(t *testing.T) {
	things := make(chan int64, 100)
	var name string
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var q metricspb.ExportMetricsServiceRequest
		if err != nil || proto.Unmarshal(body, &q) != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("a request to %s: %v", r.URL, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		for _, rm := range q.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, m := range sm.Metrics {
					name = m.Name
					for _, p := range m.GetSum().GetDataPoints() {
						things <- p.GetAsInt()
					}
				}
			}
		}
	}))
	defer c.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
	m := three(t, MetricsConfig{})
	select {
	case n := <-things:
		if n != 3 || name != "moeflux.things" {
			t.Errorf("the collector has %d of %q", n, name)
		}
	case <-time.After(20 * time.Second):
		t.Error("the collector got nothing")
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	for len(things) > 0 {
		<-things
	}
	m = three(t, MetricsConfig{})
	if err := m.Shutdown(t.Context()); err != nil || len(things) > 0 {
		t.Errorf("%v, and the collector got %d figures that it was not to get", err, len(things))
	}
}

// A collector that refuses figures is told of once, and the text is there all the same.
func TestMetricsRefused(t *testing.T) {
	refused := make(chan struct{}, 1000)
	c := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		refused <- struct{}{}
	}))
	defer c.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", c.URL+"/v1/metrics")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "10")
	var log testenv.Log
	m := three(t, MetricsConfig{Logger: log.Logger()})
	for range 3 {
		<-refused
	}
	if got := text(t, m); !strings.Contains(got, "moeflux_things_total 3") {
		t.Errorf("the text is\n%s", got)
	}
	_ = m.Shutdown(t.Context())
	if n := strings.Count(log.String(), "does not take the figures"); n != 1 {
		t.Errorf("the log:\n%s", log.String())
	}
}

func TestMetricsEnvironment(t *testing.T) {
	for variable, value := range map[string]string{
		"OTEL_METRICS_EXPORTER": "carrier-pigeon", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json", "OTEL_METRIC_EXPORT_INTERVAL": "often",
		"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "soon", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "nowhere",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv("OTEL_METRICS_EXPORTER", "otlp")
			t.Setenv(variable, value)
			if _, err := NewMetrics(MetricsConfig{}); err == nil || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), value) {
				t.Errorf("%s=%s: %v", variable, value, err)
			}
		})
	}
}
