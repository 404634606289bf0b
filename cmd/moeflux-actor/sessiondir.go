package main

import (
	"fmt"
	"path/filepath"
)

// sessionDir returns the folder of sessions: the one given, or that of this user.
func sessionDir(inv *invocation, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	dir, err := inv.env.stateDir()
	if err != nil {
		return "", fmt.Errorf("this user has no folder for sessions, name one with --session-dir: %w", err)
	}
	return filepath.Join(dir, program, "sessions"), nil
}
