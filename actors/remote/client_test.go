package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestCloseAmidHandshake closes a client while a host takes its connection and says nothing, which
// alone would take dialPatience.
func TestCloseAmidHandshake(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := New(Config{
		Hosts: []string{l.Addr().String()}, TLS: &tls.Config{ServerName: "host"}, Log: slog.New(slog.DiscardHandler),
		Send: func(stages.StageID, stages.Message) { t.Error("a stage was told something") },
	})
	c.Dial()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	began := time.Now()
	c.Close()
	if took := time.Since(began); took > dialPatience/2 {
		t.Errorf("Close took %v", took)
	}
}

// TestAwait waits for a host that takes its time, and neither for one that is not there nor, once
// the context has ended, for one that says nothing.
func TestAwait(t *testing.T) {
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	gone, slow, silent := listen(), listen(), listen()
	gone.Close()
	defer slow.Close()
	defer silent.Close()
	await := func(ctx context.Context, addrs ...net.Listener) <-chan []string {
		cfg := Config{Log: slog.New(slog.DiscardHandler)}
		for _, l := range addrs {
			cfg.Hosts = append(cfg.Hosts, l.Addr().String())
		}
		c, returned := New(cfg), make(chan []string, 1)
		t.Cleanup(c.Close)
		c.Dial()
		go func() { returned <- c.Await(ctx) }()
		return returned
	}
	waited := await(t.Context(), gone, slow)
	conn, err := slow.Accept()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-waited:
		t.Error("it has not waited for a host that is about to answer")
	case <-time.After(20 * time.Millisecond):
	}
	conn.Close()
	if quiet := <-waited; len(quiet) != 0 {
		t.Errorf("%v have not answered", quiet)
	}
	short, cancel := context.WithCancel(t.Context())
	waited = await(short, silent)
	cancel()
	if quiet := <-waited; !slices.Equal(quiet, []string{silent.Addr().String()}) {
		t.Errorf("%v have not answered, want %v", quiet, silent.Addr())
	}
}

// A host is not silent, nor an answer late, while nobody listens because the stages that have heard
// from it are at work.
func TestNotSilentWhileStagesWork(t *testing.T) {
	const patience = DefaultPatience
	working, gone := make(chan struct{}), make(chan struct{})
	told := 0
	c := New(Config{Patience: patience, Log: slog.New(slog.DiscardHandler), Send: func(stages.StageID, stages.Message) {
		if told++; told == 2 { // the first is that the host is there
			close(working)
			time.Sleep(3 * patience)
			close(gone)
		}
	}})
	defer c.Close()
	l := &link{c: c, addr: "host"}
	l.tried, l.try = context.WithCancel(context.Background())
	mine, its := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- l.serve(mine, trusting(mine)) }()
	go func() { // the host
		if _, err := its.Write(frame.AppendEmpty(nil, frame.Drain, 0)); err != nil {
			t.Error(err)
		}
		for r := trusting(its); ; {
			f, err := r.Next()
			if err != nil {
				return
			}
			if f.Kind == frame.Ping {
				_, _ = its.Write(frame.AppendPong(nil, f.ID, 0))
			}
		}
	}()
	<-working
	<-gone
	time.Sleep(2 * patience) // pings go on
	select {
	case err := <-served:
		t.Fatalf("the connection has ended: %v", err)
	default:
	}
	its.Close()
	if err := <-served; errors.Is(err, errSilent) {
		t.Error("a host that has left was called silent")
	}
}

func trusting(conn net.Conn) *frame.Reader {
	r := frame.NewReader(conn)
	r.Trust()
	return r
}
