// Package flags holds the flags that commands have in common, and opens a model as they say: an
// engine's settings, how tokens are chosen, how a conversation goes. A flag's tags say which field
// of a library it sets, so that errors of libraries name the flag (ForUsers).
package flags
