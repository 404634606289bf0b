package main

// stateCmd groups the commands for states in files.
type stateCmd struct {
	Save stateSaveCmd `cmd:"" help:"Read a text and save the resulting state."`
	Load stateLoadCmd `cmd:"" help:"Load a state, and continue its text."`
	Show stateShowCmd `cmd:"" help:"Show what a snapshot file holds, or list the sessions."`
}
