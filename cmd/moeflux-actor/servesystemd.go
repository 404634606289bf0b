package main

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/moeflux/moeflux-actor/server"
)

// inherited returns the socket that systemd has opened for the program; nil if there is none.
func inherited() (net.Listener, error) {
	all, err := activation.Listeners()
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, usagef("systemd gives %d sockets; the server takes one", len(all))
	case all[0] == nil:
		return nil, usagef("the socket that systemd gives is not one for streams (ListenStream=)")
	}
	return all[0], nil
}

// supervisor is who starts the program and is told how it goes: systemd, or nobody.
type supervisor struct{ log *slog.Logger }

func (s supervisor) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd cannot be told how it goes", "error", err)
	}
}

// ready tells that the server listens, and where.
func (s supervisor) ready(url string) { s.tell(daemon.SdNotifyReady + "\nSTATUS=listening on " + url) }

// watch tells that the server stops once ctx has ended, and until then that it is alive, as often
// as systemd wants to know, as long as its engines answer. Done ends that.
func (s supervisor) watch(ctx context.Context, srv *server.Server) (done func()) {
	stopping := context.AfterFunc(ctx, func() { s.tell(daemon.SdNotifyStopping) })
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("systemd's watchdog is not told anything", "error", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // also while the server drains
	var watching sync.WaitGroup
	if every > 0 {
		watching.Go(func() { s.tellAlive(ctx, srv, every/3) })
	}
	return func() {
		stopping()
		cancel()
		watching.Wait()
	}
}

func (s supervisor) tellAlive(ctx context.Context, srv *server.Server, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		patience, cancel := context.WithTimeout(ctx, every)
		err := srv.Alive(patience)
		cancel()
		if err == nil {
			s.tell(daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			s.log.Error("the watchdog is not told that the server is alive", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
