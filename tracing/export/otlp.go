package export

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The protocols of OTLP, as OTEL_EXPORTER_OTLP_PROTOCOL names them.
const (
	protocolGRPC     = "grpc"
	protocolProtobuf = "http/protobuf" // the default
	protocolJSON     = "http/json"
)

// Where a collector is if nobody says it: on this machine, without TLS, as the specification of
// OTLP has it. The exporters' own default is TLS, which no collector on a machine of one's own
// speaks.
const (
	localHTTP = "http://localhost:4318"
	localGRPC = "http://localhost:4317"
)

// A batch that the collector may take later is sent again, until exportTimeout is near. Meanwhile
// spans wait in the queue.
const (
	firstRetry = 500 * time.Millisecond
	maxRetry   = 5 * time.Second
	retryFor   = 25 * time.Second
)

// EnvironmentError reports an environment variable that OTLP knows and whose value is wrong.
type EnvironmentError struct {
	Variable string
	Err      error // what is wrong with it
}

func (e *EnvironmentError) Error() string { return fmt.Sprintf("export: %s: %v", e.Variable, e.Err) }
func (e *EnvironmentError) Unwrap() error { return e.Err }

// collector is where spans go by OTLP. The exporters read the rest of the environment themselves.
type collector struct {
	protocol string
	url      string // empty: the environment has it
}

// findCollector reads "otlp=URL", or the environment if the URL is empty. A URL has the scheme
// http, https, grpc (without TLS) or grpcs; the latter two set the protocol.
func findCollector(to string) (c collector, err error) {
	if err := checkEnvironment(traces, protocolGRPC, protocolProtobuf, protocolJSON); err != nil {
		return c, err
	}
	if _, c.protocol = otlpVariable(traces, "PROTOCOL"); c.protocol == "" {
		c.protocol = protocolProtobuf
	}
	if to == "" {
		if name, _ := otlpVariable(traces, "ENDPOINT"); name != "" {
			return c, nil
		}
		to = localHTTP
		if c.protocol == protocolGRPC {
			to = localGRPC
		}
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "grpc", "grpcs"}, u.Scheme) {
		return c, fmt.Errorf("export: the collector's address %q must be http://HOST:PORT, https://…, grpc://… or grpcs://…", to)
	}
	if scheme, ok := strings.CutPrefix(u.Scheme, "grpc"); ok {
		c.protocol, u.Scheme = protocolGRPC, "http"+scheme
	} else if c.protocol != protocolGRPC {
		u.Path = path.Join("/", u.Path, "v1/traces")
	}
	c.url = u.String()
	return c, nil
}

// open makes the exporter. It does not wait for a connection.
func (c *collector) open() (sdk.SpanExporter, error) {
	ctx := context.Background()
	if c.protocol == protocolGRPC {
		options := []otlptracegrpc.Option{otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{
			Enabled: true, InitialInterval: firstRetry, MaxInterval: maxRetry, MaxElapsedTime: retryFor,
		})}
		if c.url != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(c.url))
		}
		out, err := otlptracegrpc.New(ctx, options...)
		if err != nil {
			return nil, fmt.Errorf("export: OTLP over gRPC: %w", err)
		}
		return out, nil
	}
	options := []otlptracehttp.Option{otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: firstRetry, MaxInterval: maxRetry, MaxElapsedTime: retryFor,
	})}
	if c.url != "" {
		options = append(options, otlptracehttp.WithEndpointURL(c.url))
	}
	out, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("export: OTLP over HTTP: %w", err)
	}
	return out, nil
}

// The signals of OTLP, as names of variables have them.
const (
	traces  = "TRACES"
	metrics = "METRICS"
)

// otlpVariable returns the value that holds for a signal of a variable of OTLP, and its full name.
// Both are empty if it is not set.
func otlpVariable(signal, key string) (name, value string) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_" + key, "OTEL_EXPORTER_OTLP_" + key} {
		if value := strings.TrimSpace(os.Getenv(name)); value != "" {
			return name, value
		}
	}
	return "", ""
}

// checkEnvironment reports the first variable that the exporters of a signal would ignore with a
// line on stderr, or take for something else.
func checkEnvironment(signal string, protocols ...string) error {
	for _, v := range []struct {
		key   string
		check func(string) error
	}{
		{"PROTOCOL", oneOf(protocols...)}, {"COMPRESSION", oneOf("gzip", "none")},
		{"ENDPOINT", isURL}, {"TIMEOUT", isTimeout}, {"HEADERS", isHeaders},
		{"CERTIFICATE", isCertificate}, {"CLIENT_CERTIFICATE", isFile}, {"CLIENT_KEY", isFile},
	} {
		if name, value := otlpVariable(signal, v.key); name != "" {
			if err := v.check(value); err != nil {
				return &EnvironmentError{name, err}
			}
		}
	}
	return nil
}

func oneOf(values ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("%q is unknown; available: %s", s, strings.Join(values, ", "))
		}
		return nil
	}
}

func isURL(s string) error {
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not an address like http://HOST:PORT", s)
	}
	return nil
}

func isTimeout(s string) error {
	if ms, err := strconv.Atoi(s); err != nil || ms < 1 {
		return fmt.Errorf("%q is not a number of milliseconds", s)
	}
	return nil
}

// isHeaders keeps values out of its error: they may be secrets.
func isHeaders(s string) error {
	for pair := range strings.SplitSeq(s, ",") {
		if name, _, ok := strings.Cut(pair, "="); !ok || strings.TrimSpace(name) == "" {
			return errors.New("it must be name=value pairs with commas between them")
		}
	}
	return nil
}

func isFile(name string) error {
	_, err := os.ReadFile(name)
	return err
}

func isCertificate(name string) error {
	pem, err := os.ReadFile(name)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		err = fmt.Errorf("%s has no certificate", name)
	}
	return err
}
