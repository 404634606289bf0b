package remote

import (
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"time"

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
