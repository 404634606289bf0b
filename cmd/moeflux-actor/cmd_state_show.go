package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/internal/stateinfo"
	"github.com/moeflux/moeflux-actor/snapshot/store"
)

type stateShowCmd struct {
	File   string `arg:"" optional:"" name:"FILE" help:"The snapshot. Without it, the sessions of --session-dir are listed."`
	Verify bool   `help:"Read the whole file, or all sessions, and compare with the checksums."`
	JSON   bool   `name:"json" help:"Print one JSON object for each file."`

	SessionDir string `placeholder:"DIR" help:"The folder of sessions. Default: moeflux-actor/sessions in the user's state folder."`
}

// Run shows a file, or the sessions.
func (c *stateShowCmd) Run(ctx context.Context, inv *invocation) error {
	if c.File == "" {
		return c.sessions(ctx, inv)
	}
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", c.File)
	}
	r := &stateinfo.Info{File: c.File}
	damage := r.Read(f, info.Size(), c.Verify)
	if damage != nil && r.Version == 0 {
		return fmt.Errorf("%s cannot be shown: %w", c.File, damage)
	}
	if err := c.print(inv, r); err != nil {
		return err
	}
	if damage != nil {
		return fmt.Errorf("%s is damaged, or cannot be verified: %w", c.File, damage)
	}
	return nil
}

func (c *stateShowCmd) print(inv *invocation, r *stateinfo.Info) error {
	if c.JSON {
		return writeJSON(inv.stdout, r)
	}
	_, err := io.WriteString(inv.stdout, stateText(r))
	return err
}

// stateText is a file for people.
func stateText(r *stateinfo.Info) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-14s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("file", "%s, %s", r.File, formatBytes(r.Bytes))
	line("positions", "%d of %s, %s in all", r.Positions, formatBytes(r.PositionBytes), formatBytes(r.GrowingBytes))
	line("recurrent", "%s", formatBytes(r.RecurrentBytes))
	line("layers", "%s", (&modelShape{Layers: r.Layers, LinearLayers: r.Linear, FullLayers: r.Full, LatentLayers: r.Latent}).layers())
	switch {
	case r.Sealed:
		line("format", "version %d, sealed", r.Version)
		line("model", "%s", cmp.Or(r.Fingerprint, "unknown"))
		if r.Model != "" {
			line("", "in %s", r.Model)
		}
		line("tokens", "%s", map[bool]string{true: "known", false: "unknown"}[r.Tokens == r.Positions])
		if r.NoteBytes > 0 {
			line("note", "%s", formatBytes(int64(r.NoteBytes)))
		}
	default:
		line("format", "version %d, without a seal: nothing identifies the model or the tokens, or reveals damage", r.Version)
	}
	if r.TrailingBytes > 0 {
		line("after it", "%s of unknown meaning", formatBytes(r.TrailingBytes))
	}
	switch {
	case r.Damage != "":
		line("checksum", "%s", r.Damage)
	case r.Verified:
		line("checksum", "right")
	}
	return b.String()
}

// sessions lists the sessions of the folder.
func (c *stateShowCmd) sessions(ctx context.Context, inv *invocation) error {
	dir, err := sessionDir(inv, c.SessionDir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("there are no sessions; %s run --session NAME makes one: %w", program, err)
	}
	folder, err := store.Dir(dir)
	if err != nil {
		return err
	}
	sessions, err := store.Open(ctx, folder, store.Options{})
	if err != nil {
		return err
	}
	all, err := sessions.List()
	if err != nil {
		return err
	}
	if !c.JSON {
		inv.say("sessions in %s: %d", dir, len(all))
	}
	damaged := 0
	for _, e := range all {
		r := &stateinfo.Info{File: sessions.Path(e.Name), Session: e.Name, Used: e.Used.Format(time.RFC3339)}
		switch err := r.ReadFile(c.Verify); {
		case errors.Is(err, fs.ErrNotExist):
			continue // removed meanwhile
		case err != nil:
			damaged++
		}
		if err := c.printSession(inv, r); err != nil {
			return err
		}
	}
	if damaged > 0 {
		return fmt.Errorf("%d of the sessions in %s cannot be used; remove their files", damaged, dir)
	}
	return nil
}

// printSession prints a session as a line.
func (c *stateShowCmd) printSession(inv *invocation, r *stateinfo.Info) error {
	if c.JSON {
		return writeJSON(inv.stdout, r)
	}
	state := fmt.Sprintf("%d positions, %s", r.Positions, formatBytes(r.Bytes))
	if r.Messages > 0 {
		state = fmt.Sprintf("%d messages, ", r.Messages) + state
	}
	switch {
	case r.Error != "":
		state = fmt.Sprintf("unusable, remove %s: %s", r.File, r.Error)
	case r.Damage != "":
		state += fmt.Sprintf(", damaged, remove %s: %s", r.File, r.Damage)
	case r.Verified:
		state += ", checksum right"
	}
	_, err := fmt.Fprintf(inv.stdout, "%-20s %s  %s\n", r.Session, r.Used, state)
	return err
}
