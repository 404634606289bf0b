package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/server"
	"github.com/moeflux/moeflux-actor/server/access"
)

// keys returns the keys of the file or of the environment; none if there is neither.
func (c *serveCmd) keys(inv *process.Invocation) ([]server.Key, error) {
	switch {
	case c.APIKeyFile != "":
		keys, err := access.ReadFile(c.APIKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--api-key-file %s cannot be read: %w", c.APIKeyFile, err)
		}
		return keys, nil
	case inv.Env.APIKeys != "":
		keys, err := access.Read(strings.NewReader(inv.Env.APIKeys))
		if err != nil {
			return nil, fmt.Errorf("MOEFLUX_API_KEYS cannot be read: %w", err)
		}
		return keys, nil
	}
	return nil, nil
}

// followKeys has the server read its file of keys again when it changes, and for SIGHUP, until done
// is called.
func (c *serveCmd) followKeys(ctx context.Context, srv *server.Server) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	var following sync.WaitGroup
	following.Go(func() { srv.FollowKeys(ctx, c.APIKeyFile, again) })
	return func() {
		cancel()
		signal.Stop(again)
		following.Wait()
	}
}
