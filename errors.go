package moeflux

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/snapshot/store"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/stages/sample/constraint"
	"github.com/moeflux/moeflux-actor/tokenizer"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// Errors of Open, for errors.As. The comments of those that are defined elsewhere are there.
type (
	// NotModelError: the directory holds no packed model.
	NotModelError = weights.NotModelError
	// MemoryError: the model needs more memory than there is.
	MemoryError = actors.MemoryError
	// ContextMemoryError: the memory for states does not hold one text of Config.Context.
	ContextMemoryError = actors.ContextMemoryError
	// UnknownArchError: a kind of model that the engine does not run.
	UnknownArchError = model.UnknownArchError
	// ConfigError: a setting of the model's own files that the engine does not know.
	ConfigError = model.ConfigError
	// UnfinishedError: a call has returned because its context ended, and the engine is still at
	// what it asked for. From Open: a disk or device hangs, which keeps Config.Device in use until
	// its Ended is closed.
	UnfinishedError = actors.UnfinishedError
	// LeftBehindError: of Close, what a hung disk, device or exporter still holds.
	LeftBehindError = actors.LeftBehindError
)

// Errors of requests, for errors.As.
type (
	// NoTemplateError: the model has no chat template, so that it cannot Chat.
	NoTemplateError = chat.NoTemplateError
	// ContextError: the prompt is longer than the context, its Max.
	ContextError = stages.ContextError
	// QueueFullError: too many requests wait for memory; its RetryAfter, a time.Duration, says when
	// to try again.
	QueueFullError = stages.QueueFullError
	// StateMemoryError: there is no memory for the text, and waiting would not help.
	StateMemoryError = stages.StateMemoryError
	// StepError: a step of the pipeline failed, as when the disk cannot be read; its Stage, Layer
	// and Err say where and why. Only the requests that needed it fail.
	StepError = stages.StepError
	// PoisonedError: the state of a session is of no use since the error before. The next request
	// reads the text again.
	PoisonedError = stages.PoisonedError
	// UnencodableError: a byte of the prompt for which the vocabulary has no token.
	UnencodableError = tokenizer.UnencodableError
	// TextSizeError: a prompt that is too long for the tokenizer.
	TextSizeError = tokenizer.TextSizeError
	// BrokenError: a bug; the engine has stopped. Only Close is of use.
	BrokenError = actors.BrokenError
	// StoppedError: the actor system of the host service was shut down. Only Close is of use.
	StoppedError = actors.StoppedError
)

// Errors of JSONSchema, for errors.As, and for errors.Is ErrUnsatisfiableSchema.
type (
	// UnsupportedSchemaError: a keyword that constraints do not support, its Keyword and Pointer.
	UnsupportedSchemaError = constraint.UnsupportedError
	// InvalidSchemaError: what is not a schema.
	InvalidSchemaError = constraint.SchemaError
	// SchemaLimitError: a schema that needs more than a constraint may.
	SchemaLimitError = constraint.LimitError
)

// SessionError reports what could not be done with a kept session; errors.Is finds its kind, one of
// the ErrSession values below.
type SessionError = store.Error

// Errors for errors.Is.
var (
	// ErrClosed answers a request to a closed model or session.
	ErrClosed = stages.ErrClosed
	// ErrBusy answers a request in a session that has not ended the one before.
	ErrBusy = stages.ErrBusy
	// ErrUnsatisfiableSchema: no JSON value satisfies the schema.
	ErrUnsatisfiableSchema = constraint.ErrUnsatisfiable
	// ErrEmptyPrompt answers a request that gives the model nothing to read: a conversation without
	// a message, or with no new one after the last answer; an empty Prompt, unless the model has a
	// token that begins a text.
	ErrEmptyPrompt = errors.New("there is nothing to continue; give a prompt, or a message")
	// ErrNoTools: the model's chat template does not tell the model of tools. ErrNoCalls: it does
	// not write calls, which the messages have.
	ErrNoTools = chat.ErrNoTools
	ErrNoCalls = chat.ErrNoCalls
	// ErrAllExcluded: Sampling.LogitBias excludes every token.
	ErrAllExcluded = sample.ErrAllExcluded

	// ErrSessionKind: a text is not a conversation, nor the other way round.
	ErrSessionKind = errors.New("a session is either a text or a conversation")
	// ErrSessionModel: the session was made with another model.
	ErrSessionModel = snapshot.ErrFingerprint
	// ErrSessionTooLong: the session has more positions than fit into Config.Context.
	ErrSessionTooLong = snapshot.ErrTooLong
	// The rest are about files of sessions.
	ErrSessionName     = store.ErrName      // not a name for a session
	ErrSessionHeld     = store.ErrHeld      // in use by another process, or another Session
	ErrSessionDamaged  = store.ErrDamaged   // the file is damaged
	ErrSessionFolder   = store.ErrFolder    // the folder cannot be used
	ErrSessionTooLarge = store.ErrTooLarge  // larger than the limit of the folder
	ErrSessionDiskFull = store.ErrDiskFull  // no room
	ErrSessionNoRoom   = store.ErrNoRoom    // saved, but older ones could not be removed to make room
	ErrSessionUnsynced = store.ErrUnsettled // saved, but a loss of power may undo it
)

var (
	errOtherModel = errors.New("a session belongs to the model of its first request; close it and open it again")
	errEmptyStop  = errors.New("an empty string would end every text at once")
	errTokensOnly = errors.New("this model was opened for its engine alone (Options.TokensOnly)")
)

// FormerRuleError reports a session or a snapshot of an earlier version, for which every file in a
// model's directory was part of the model. It wraps ErrSessionModel.
type FormerRuleError = actors.FormerRuleError

// NoTokenizerError reports a model directory without a tokenizer.
type NoTokenizerError struct{ Dir string }

func (e *NoTokenizerError) Error() string {
	return fmt.Sprintf("%s has no tokenizer.json, tiktoken.model or hy.tiktoken; copy the checkpoint's there, or open it with Options.TokensOnly", e.Dir)
}

// DeviceError reports that what Options.Device names cannot be used.
type DeviceError struct{ Err error }

func (e *DeviceError) Error() string { return e.Err.Error() }
func (e *DeviceError) Unwrap() error { return e.Err }

// RequestError reports a field of a Request that cannot be served. Nothing was done.
type RequestError struct {
	Field string
	Err   error
}

func (e *RequestError) Error() string { return fmt.Sprintf("Request.%s: %v", e.Field, e.Err) }
func (e *RequestError) Unwrap() error { return e.Err }

// TemplateError reports a conversation of which the model's chat template makes no prompt. Refused
// says that the template says so itself, as where roles must alternate; otherwise it fails.
type TemplateError struct {
	Refused bool
	Err     error
}

func (e *TemplateError) Error() string {
	if refusal, ok := errors.AsType[*jinja.Error](e.Err); ok && e.Refused {
		return "the model's chat template refuses the conversation: " + refusal.Msg
	}
	return fmt.Sprintf("the model's chat template fails: %v", e.Err)
}
func (e *TemplateError) Unwrap() error { return e.Err }
