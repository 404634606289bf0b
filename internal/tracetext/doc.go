// Package tracetext says in words and tables what package tracing/analyse found.
package tracetext
