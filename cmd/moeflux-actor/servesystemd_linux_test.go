package main

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// supervised is the program as systemd starts it: with a socket that is open already, a place to
// tell how it goes, and a watchdog.
type supervised struct {
	*exec.Cmd
	addr string
	told *net.UnixConn
}

func supervise(t *testing.T, args ...string) *supervised {
	t.Helper()
	notify := filepath.Join(t.TempDir(), "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { told.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	// LISTEN_PID must be the program's own number, which a shell knows before it becomes it.
	cmd := exec.Command("/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0], "serve", "--cache-dir", sharedCache}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "LISTEN_FDS=1", "NOTIFY_SOCKET="+notify, "WATCHDOG_USEC=3000000")
	cmd.ExtraFiles = []*os.File{socket}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &supervised{cmd, l.Addr().String(), told}
}

// expect waits until the program tells something.
func (s *supervised) expect(t *testing.T, want string) {
	t.Helper()
	if err := s.told.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 1000); ; {
		n, err := s.told.Read(b)
		if err != nil {
			t.Fatalf("%s was not told: %v", want, err)
		}
		if strings.Contains(string(b[:n]), want) {
			return
		}
	}
}

// systemd's socket is served, systemd is told what it waits for, and the end is a clean one.
func TestServeUnderSystemd(t *testing.T) {
	s := supervise(t)
	s.expect(t, "READY=1\nSTATUS=listening on http://"+s.addr)
	resp, err := http.Get("http://" + s.addr + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %d", resp.StatusCode)
	}
	s.expect(t, "WATCHDOG=1")
	s.expect(t, "WATCHDOG=1") // again and again
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "STOPPING=1")
	if err := s.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// While an answer is under way the first SIGTERM waits for it, and the second one ends the program.
func TestSecondSignalEndsServe(t *testing.T) {
	s := supervise(t, "--drain-timeout", "1h", "--ctx", "100000", "--ctx-beyond")
	s.expect(t, "READY=1")
	body := `{"prompt":"package main","max_tokens":90000,"stream":true,"logit_bias":{"4093":-100,"4095":-100}}`
	resp, err := http.Post("http://"+s.addr+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stream := bufio.NewReader(resp.Body)
	if _, err := stream.ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.expect(t, "STOPPING=1")
	for range 10 {
		if _, err := stream.ReadString('\n'); err != nil {
			t.Fatalf("the answer does not go on: %v", err)
		}
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = s.Wait()
	if state := s.ProcessState.Sys().(syscall.WaitStatus); !state.Signaled() || state.Signal() != syscall.SIGTERM {
		t.Errorf("the program ended with %v", s.ProcessState)
	}
}
