package actors

import "github.com/moeflux/moeflux-actor/actors/runtime"

// BrokenError reports an engine that has stopped because of a bug: a stage panicked, or found one
// of its invariants broken. Only Close is of use then.
type BrokenError = runtime.BrokenError

// StoppedError reports an engine that was stopped from outside: its actor system was shut down, or
// one of its actors was stopped. Only Close is of use then.
type StoppedError = runtime.StoppedError

// MessageError answers a request that an engine's actor does not take. The engine is not affected.
type MessageError = runtime.MessageError
