// Package server answers HTTP requests with a model: New returns a handler that a program may mount
// in a server of its own, and that "moeflux-actor serve" listens with.
//
// A request passes, in this order: the guard (guard.go: recovery, host, origin, key, limits), the
// route (routes.go), the reader of its body (package api and those below it, through apis.go), the
// model (answer.go), and the writer of its reply: JSON at once, or server-sent events (serve.go).
//
// What the packages below do, each with a concept of its own:
//
//   - models: what the server needs of a model, and the names by which clients find one;
//   - access: keys, whose a request is, and what it may use;
//   - api: what the APIs have in common, a call and its reply; below it a package for each API;
//   - body, fault, wire: what comes in as JSON, what is wrong with it, and what goes out;
//   - visit: what is known of a request while it is answered;
//   - figures and watch: what is counted, and what may be watched;
//   - page: plain files that are a client like any other;
//   - fleet: several models under one budget of memory.
//
// What keeps it safe is listed in removals_test.go: each check, and the test that fails without it.
//
// The server sees models through the interface Model, so that tests run it with one that says what
// its script has.
package server
