package main

// stateCmd groups the commands for states in files.
type stateCmd struct {
	Save stateSaveCmd `cmd:"" help:"Read a text and save the resulting state."`
	Load stateLoadCmd `cmd:"" help:"Load a state, and continue its text."`
	Show stateShowCmd `cmd:"" help:"Show what a snapshot file holds, or list the sessions."`
}

// Help is shown by --help.
func (stateCmd) Help() string {
	return `Example:

    moeflux-actor state save rules.snapshot -f rules.txt
    moeflux-actor state load rules.snapshot -p "And so" --json
    moeflux-actor state show rules.snapshot --verify

A state is what a model remembers of a text. With it, the text need not be read again. run --session keeps states by name.`
}
