package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/hub"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/pull"
)

type pullCmd struct {
	Repo     string `arg:"" name:"ORG/NAME" help:"The repository, as the hub names it."`
	Dst      string `arg:"" name:"DIR" help:"The directory to make. It appears once it is complete."`
	Revision string `default:"main" placeholder:"R" help:"A branch, a tag or the hash of a commit. What it stands for when the command is first given holds until it is done."`
	File     string `placeholder:"GGUF" help:"Fetch this GGUF file as it is, with all its parts, instead of the checkpoint in safetensors."`
	conversionFlags
	JSON bool `name:"json" help:"Print one JSON object at the end: dst, repo, commit, files (the GGUF files), seconds."`
}

// Run fetches and converts.
func (c *pullCmd) Run(ctx context.Context, inv *process.Invocation) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	show := &pullProgress{inv: inv, bar: process.NewProgress(inv)}
	o.Progress = show.update
	config := inv.Env.Hub
	config.UserAgent, config.Waiting = process.Program, show.waiting
	client, err := hub.New(config)
	if err != nil {
		return process.Usage(err)
	}
	defer client.Close()
	begin := inv.Env.Now()
	result, err := pull.Pull(ctx, client, c.Dst, o)
	show.bar.Clear()
	if err != nil {
		return resumable(ctx, inv, err)
	}
	seconds := inv.Env.Now().Sub(begin).Seconds()
	switch {
	case c.JSON:
		return process.WriteJSON(inv.Stdout, map[string]any{"dst": c.Dst, "repo": c.Repo, "commit": result.Commit, "files": result.Files, "seconds": seconds})
	case len(result.Files) > 0:
		_, err = fmt.Fprintf(inv.Stdout, "%s is complete after %.0f s; see what it holds with %s inspect %s\n", c.Dst, seconds, process.Program, result.Files[0])
	default:
		err = sayComplete(inv, c.Dst, seconds)
	}
	return err
}

// options returns what is asked for.
func (c *pullCmd) options() (pull.Options, error) {
	convert, err := c.conversionFlags.options()
	switch {
	case err != nil:
		return pull.Options{}, err
	case !hub.RepoName(c.Repo):
		return pull.Options{}, process.Usagef("%q is not the name of a repository, which has the form ORG/NAME", c.Repo)
	case c.File != "" && !strings.HasSuffix(c.File, ".gguf"):
		return pull.Options{}, process.Usagef("--file %s: must be a GGUF file; without --file the checkpoint in safetensors is fetched", c.File)
	case c.File != "" && c.conversionFlags != conversionFlags{}:
		return pull.Options{}, process.Usagef("--file fetches a file as it is: leave out --bits, --expert-bits and --layout")
	}
	return pull.Options{Repo: c.Repo, Revision: c.Revision, File: c.File, Convert: convert}, nil
}

// pullProgress shows how far a pull is, and why it waits.
type pullProgress struct {
	inv *process.Invocation

	mu  sync.Mutex // several requests may wait at a time
	bar *process.Progress
}

func (p *pullProgress) update(s pull.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Warning != "" {
		p.say(s.Warning)
	}
	if s.Total > 0 {
		p.bar.Moved(s.Fetched)
		p.bar.Update(s.Step, s.Done, s.Total, figures.Bytes)
	}
}

func (p *pullProgress) waiting(why error, how time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := "trying again"
	if how > 0 {
		again += " in " + how.String()
	}
	p.say(fmt.Sprintf("%v; %s", why, again))
}

func (p *pullProgress) say(text string) {
	p.bar.Clear()
	p.inv.Say("%s", text)
}
