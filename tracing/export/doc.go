// Package export makes the provider of spans for the rest of the program: it samples, queues spans
// and exports them, as JSON to a stream or a file, or to a collector by OTLP. It is the only
// package that uses the OpenTelemetry SDK.
//
// Nobody waits for a full queue: spans that do not fit are dropped and counted. A writer or a
// collector that fails, hangs or refuses costs spans and nothing else.
//
// For OTLP the environment has its standard say (OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL, _HEADERS,
// _TIMEOUT, _COMPRESSION, _CERTIFICATE and so on, each also with TRACES_): the exporters of
// OpenTelemetry read it, and New refuses what they would ignore.
package export
