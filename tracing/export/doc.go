// Package export makes the provider of spans that the rest of the engine uses: sampling, a queue,
// and an exporter that writes them. It is the one place that knows the OpenTelemetry SDK. Spans
// that do not fit into the queue are dropped and counted, never waited for.
package export
