// Package collectortest sends spans of tracing/export to the receiver of the OpenTelemetry
// Collector itself. It is a module of its own, so that nobody who builds the program fetches a
// collector; .ci/run has a step for it.
package collectortest
