package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/stateinfo"
)

type stateShowCmd struct {
	File   string `arg:"" optional:"" name:"FILE" help:"The snapshot. Without it, the sessions of --session-dir are listed."`
	Verify bool   `help:"Read the whole file, or all sessions, and compare with the checksums."`
	JSON   bool   `name:"json" help:"Print one JSON object for each file."`

	SessionDir string `placeholder:"DIR" help:"The folder of sessions. Default: moeflux-actor/sessions in the user's state folder."`
}

// Run shows a file, or the sessions.
func (c *stateShowCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if c.File == "" {
		return c.sessions(ctx, inv)
	}
	f, size, err := process.OpenRegular(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	r := &stateinfo.Info{File: c.File}
	damage := r.Read(f, size, c.Verify)
	if damage != nil && r.Version == 0 {
		return fmt.Errorf("%s cannot be shown: %w", c.File, damage)
	}
	if err := inv.Print(c.JSON, r, r.Text); err != nil {
		return err
	}
	if damage != nil {
		return fmt.Errorf("%s is damaged, or cannot be verified: %w", c.File, damage)
	}
	return nil
}

// sessions lists the sessions of the folder.
func (c *stateShowCmd) sessions(ctx context.Context, inv *process.Invocation) error {
	dir, err := sessionDir(inv, c.SessionDir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("there are no sessions; %s run --session NAME makes one: %w", process.Program, err)
	}
	all, err := stateinfo.List(ctx, dir)
	if err != nil {
		return err
	}
	if !c.JSON {
		inv.Say("sessions in %s: %d", dir, len(all))
	}
	damaged := 0
	for _, r := range all {
		switch err := r.ReadFile(c.Verify); {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed meanwhile
		case err != nil:
			damaged++
		}
		if err := inv.Print(c.JSON, r, r.Line); err != nil {
			return err
		}
	}
	if damaged > 0 {
		return fmt.Errorf("%d of the sessions in %s cannot be used; remove their files", damaged, dir)
	}
	return nil
}
