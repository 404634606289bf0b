package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// mostSeries bounds the series of one figure. What comes beyond them is one series, which says so.
const mostSeries = 2000

// MetricsConfig says what program figures are of. The zero value is ready for use.
type MetricsConfig struct {
	// ServiceName and ServiceVersion are those of Config.
	ServiceName, ServiceVersion string
	// Logger is told of the first batch of figures that a collector does not take. nil means that
	// nobody is.
	Logger *slog.Logger
}

// Metrics is a provider of meters whose figures are read as Prometheus text, beside those of Go's
// runtime and of the process. They also go to a collector by OTLP, if the environment says so:
// with OTEL_METRICS_EXPORTER=otlp, or where it names a collector (OTEL_EXPORTER_OTLP_ENDPOINT, or
// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT) and OTEL_METRICS_EXPORTER is not set. OTLP's other
// variables hold as for spans, but for the protocol http/json.
type Metrics struct {
	provider *sdkmetric.MeterProvider
	text     http.Handler
}

// NewMetrics returns a Metrics, which must be shut down. Errors: *EnvironmentError.
func NewMetrics(c MetricsConfig) (*Metrics, error) {
	program, err := about(c.ServiceName, c.ServiceVersion)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	text, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("export: Prometheus: %w", err)
	}
	options := []sdkmetric.Option{sdkmetric.WithResource(program), sdkmetric.WithReader(text), sdkmetric.WithCardinalityLimit(mostSeries)}
	to, err := metricsCollector()
	if err != nil {
		return nil, err
	}
	if to != nil {
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(&loud{Exporter: to, log: c.Logger})))
	}
	return &Metrics{
		provider: sdkmetric.NewMeterProvider(options...),
		text:     promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}),
	}, nil
}

// Provider returns the provider of meters.
func (m *Metrics) Provider() metric.MeterProvider { return m.provider }

// ServeHTTP answers with all figures as Prometheus text, or in another of its formats.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.text.ServeHTTP(w, r) }

// Shutdown sends the last figures, unless ctx ends first.
func (m *Metrics) Shutdown(ctx context.Context) error { return m.provider.Shutdown(ctx) }

// Report has figures tell what became of spans, by outcome.
func (e *Exporter) Report(to metric.MeterProvider) error {
	meter := to.Meter("github.com/moeflux/moeflux-actor/tracing/export")
	spans, err := meter.Int64ObservableCounter("moeflux.spans", metric.WithDescription("Spans that ended, by what became of them: written, dropped since the queue was full, or failed."))
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := e.Stats()
		for outcome, n := range map[string]int64{"written": s.Written, "dropped": s.Dropped, "failed": s.Failed} {
			o.ObserveInt64(spans, n, metric.WithAttributes(attribute.String("outcome", outcome)))
		}
		return nil
	}, spans)
	return err
}

// metricsCollector returns what sends figures to the collector that the environment names; nil if
// it names none.
func metricsCollector() (sdkmetric.Exporter, error) {
	const choice = "OTEL_METRICS_EXPORTER"
	switch to := os.Getenv(choice); to {
	case "":
		if name, _ := otlpVariable(metrics, "ENDPOINT"); name == "" {
			return nil, nil
		}
	case "otlp":
	case "none", "prometheus":
		return nil, nil
	default:
		return nil, &EnvironmentError{choice, fmt.Errorf("%q is unknown; available: otlp, prometheus, none", to)}
	}
	if err := checkEnvironment(metrics, protocolGRPC, protocolProtobuf); err != nil {
		return nil, err
	}
	if err := checkInterval("OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT"); err != nil {
		return nil, err
	}
	endpoint, _ := otlpVariable(metrics, "ENDPOINT")
	if _, protocol := otlpVariable(metrics, "PROTOCOL"); protocol == protocolGRPC {
		return openMetricsGRPC(endpoint == "")
	}
	return openMetricsHTTP(endpoint == "")
}

func openMetricsGRPC(local bool) (sdkmetric.Exporter, error) {
	o := []otlpmetricgrpc.Option{otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{
		Enabled: true, InitialInterval: firstRetry, MaxInterval: maxRetry, MaxElapsedTime: retryFor,
	})}
	if local {
		o = append(o, otlpmetricgrpc.WithEndpointURL(localGRPC))
	}
	x, err := otlpmetricgrpc.New(context.Background(), o...)
	if err != nil {
		return nil, fmt.Errorf("export: OTLP over gRPC: %w", err)
	}
	return x, nil
}

func openMetricsHTTP(local bool) (sdkmetric.Exporter, error) {
	o := []otlpmetrichttp.Option{otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{
		Enabled: true, InitialInterval: firstRetry, MaxInterval: maxRetry, MaxElapsedTime: retryFor,
	})}
	if local {
		o = append(o, otlpmetrichttp.WithEndpointURL(localHTTP+"/v1/metrics"))
	}
	x, err := otlpmetrichttp.New(context.Background(), o...)
	if err != nil {
		return nil, fmt.Errorf("export: OTLP over HTTP: %w", err)
	}
	return x, nil
}

func checkInterval(names ...string) error {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			if err := isTimeout(value); err != nil {
				return &EnvironmentError{name, err}
			}
		}
	}
	return nil
}

// loud tells the log of the first batch that fails, and again after one that did not. The SDK would
// print each on stderr.
type loud struct {
	sdkmetric.Exporter
	log *slog.Logger

	mu   sync.Mutex
	told bool
}

// Export sends figures. What cannot be sent now is in the next batch, since figures only grow.
func (l *loud) Export(ctx context.Context, figures *metricdata.ResourceMetrics) error {
	err := l.Exporter.Export(ctx, figures)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !l.told && l.log != nil && !errors.Is(err, context.Canceled) {
		l.log.Warn("a collector does not take the figures", "error", err)
	}
	l.told = err != nil
	return nil
}
