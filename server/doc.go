// Package server answers HTTP requests with a model: New returns a handler that a program may mount
// in a server of its own, and that "moeflux-actor serve" listens with.
//
// A request passes, in this order: the guard (guard.go: recovery, host, origin, key, limits), the
// route (routes.go), the reader of its body (body.go and a file for each API), the model
// (answer.go) and a writer: JSON at once, or server-sent events (events.go). What the APIs have in
// common is a call: a moeflux.Request, and how its answer is wanted. Each API is a way to read a
// call and a way to write an answer; none has a way of its own to the model.
//
// Every documented parameter of an API is done or refused with a 400 that names it. Unknown fields
// are left out, as clients send them.
//
// The page (page.go and the folder page) is plain files in the program: ES modules and styles,
// without a build step and without anything from elsewhere. It is a client like any other.
//
// The package sees models through the interface Model, so that tests run it with one that says what
// its script has.
package server
