package main

// stateCmd is what can be done with the state of a text as a file.
type stateCmd struct {
	Show stateShowCmd `cmd:"" help:"Show what a snapshot file holds, or which sessions there are."`
}
