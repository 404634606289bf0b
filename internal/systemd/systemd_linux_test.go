package systemd

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

// A server that ends as soon as it is told to stop has told systemd so: each time, though the
// telling begins in a goroutine of its own.
func TestStoppingIsTold(t *testing.T) {
	notify := filepath.Join(t.TempDir(), "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	t.Setenv("NOTIFY_SOCKET", notify)
	s := Supervisor{Log: slog.New(slog.DiscardHandler)}
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		done := s.Watch(ctx, nil)
		cancel()
		done()
		raw, err := told.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		b, n, failed := make([]byte, 100), 0, error(nil)
		err = raw.Read(func(fd uintptr) bool {
			n, _, failed = syscall.Recvfrom(int(fd), b, syscall.MSG_DONTWAIT) // it lies there already
			return true
		})
		if err != nil || failed != nil || string(b[:n]) != "STOPPING=1" {
			t.Fatalf("time %d: %q was told, and the errors are %v and %v", i, b[:max(n, 0)], err, failed)
		}
	}
}
