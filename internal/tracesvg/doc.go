// Package tracesvg draws what tracing/analyse has found as SVG, for a reader's screen, light or
// dark, and for pages of documentation.
package tracesvg
