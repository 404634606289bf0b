// Package scripted is a model that says what a test has it say, for tests of what stands on a
// moeflux.Generator: no engine, no files, the same answer each time. Agent is a script that does
// what it is told, as the clients of a server expect of a good model: it calls tools, keeps to
// schemas and remembers names.
package scripted
