package actors

import "github.com/moeflux/moeflux-actor/actors/runtime"

// BrokenError reports an engine that has stopped because of a bug: a stage panicked, or found one
// of its invariants broken. Only Close is of use then.
type BrokenError = runtime.BrokenError

// StoppedError reports an engine that was stopped from outside: its actor system was shut down, or
// one of its actors was stopped. Only Close is of use then.
type StoppedError = runtime.StoppedError

// UnfinishedError reports a call that has returned, because its context ended, before what it asked
// for was done or given up. The engine is still at it. A sequence that it changes is busy until
// then (stages.ErrBusy, Description.Busy); afterwards Len, Err and Describe tell where it stands.
type UnfinishedError = runtime.UnfinishedError

// MessageError answers a request that an engine's actor does not take. The engine is not affected.
type MessageError = runtime.MessageError
