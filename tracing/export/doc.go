// Package export makes the provider of spans for the rest of the program: it samples, queues spans
// and exports them. It is the only package that uses the OpenTelemetry SDK. Nobody waits for a full
// queue: spans that do not fit are dropped and counted.
package export
