// Package figures holds what run, bench and doctor print: what an engine counted between two
// moments, how a figure spread over several runs, and what the words mean.
//
// Totals are of the whole engine, LayerCounts of one layer. Both are differences of two
// actors.Stats, in the units and under the names that the commands print as JSON. Their texts for
// people use the words of the Glossary. Line and Table are how the commands print results.
package figures
