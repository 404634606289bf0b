// Package systemd is what a server has of systemd: a socket that is open already, and who is told
// that the server listens, stops, and is alive. Where systemd did not start the program, there is
// no socket and nobody is told.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// UnitError reports sockets that a unit file gives and a server cannot listen on.
type UnitError struct{ what string }

func (e *UnitError) Error() string { return e.what }

// Listener returns the socket that systemd has opened for the program; nil if there is none. The
// error is a *UnitError if the unit file is wrong.
func Listener() (net.Listener, error) {
	all, err := activation.Listeners()
	switch {
	case err != nil || len(all) == 0:
		return nil, err
	case len(all) > 1:
		return nil, &UnitError{fmt.Sprintf("systemd gives %d sockets; the server takes one", len(all))}
	case all[0] == nil:
		return nil, &UnitError{"the socket that systemd gives is not one for streams (ListenStream=)"}
	}
	return all[0], nil
}

// Supervisor is who starts the program and is told how it goes: systemd, or nobody. What cannot be
// told goes to the log.
type Supervisor struct{ Log *slog.Logger }

func (s Supervisor) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.Log.Warn("systemd cannot be told how it goes", "error", err)
	}
}

// Ready tells that the server listens, and where.
func (s Supervisor) Ready(url string) { s.tell(daemon.SdNotifyReady + "\nSTATUS=listening on " + url) }

// Watch tells that the server stops once ctx has ended, and that it is alive, as often as systemd
// wants to know, as long as alive has no error. It does so while the server drains, too; done ends
// that.
func (s Supervisor) Watch(ctx context.Context, alive func(context.Context) error) (done func()) {
	told := make(chan struct{})
	untold := context.AfterFunc(ctx, func() {
		defer close(told)
		s.tell(daemon.SdNotifyStopping)
	})
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.Log.Warn("systemd's watchdog is not told anything", "error", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // also while the server drains
	var watching sync.WaitGroup
	if every > 0 {
		watching.Go(func() { s.tellAlive(ctx, alive, every/3) })
	}
	return func() {
		if !untold() {
			<-told // before the program ends
		}
		cancel()
		watching.Wait()
	}
}

func (s Supervisor) tellAlive(ctx context.Context, alive func(context.Context) error, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		patience, cancel := context.WithTimeout(ctx, every)
		err := alive(patience)
		cancel()
		if err == nil {
			s.tell(daemon.SdNotifyWatchdog)
		} else if ctx.Err() == nil {
			s.Log.Error("the watchdog is not told that the server is alive", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
