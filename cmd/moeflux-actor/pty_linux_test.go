package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// terminal is a pseudo-terminal with the program on it.
type terminal struct {
	t       *testing.T
	keys    *os.File
	program *exec.Cmd

	mu     sync.Mutex
	screen bytes.Buffer
	seen   int // of screen, by waitFor
	gone   chan struct{}
}

// startOnTerminal runs the program with a person at it.
func startOnTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("this system gives no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() { keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	p := &terminal{t: t, keys: keys, gone: make(chan struct{})}
	p.program = exec.Command(os.Args[0], append(args, "--cache-dir", sharedCache)...)
	p.program.Env = append(os.Environ(), asProgram+"=1", "TERM=xterm", "NO_COLOR=")
	p.program.Stdin, p.program.Stdout, p.program.Stderr = tty, tty, tty
	p.program.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.program.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		buf := make([]byte, 4096)
		for {
			n, err := keys.Read(buf)
			p.mu.Lock()
			p.screen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil { // EIO once the program is gone
				return
			}
		}
	}()
	return p
}

// waitFor waits until text comes on the screen after what it waited for before.
func (p *terminal) waitFor(text string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		rest := p.screen.String()[p.seen:]
		if i := strings.Index(rest, text); i >= 0 {
			p.seen += i + len(text)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if time.Now().After(end) {
			_ = p.program.Process.Kill()
			p.t.Fatalf("%q does not come on the screen; it shows %q", text, rest)
		}
	}
}

func (p *terminal) press(keys string) {
	p.t.Helper()
	if _, err := p.keys.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the program and returns its exit code.
func (p *terminal) exit() int {
	p.t.Helper()
	done := make(chan struct{})
	go func() { _ = p.program.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		_ = p.program.Process.Kill()
		p.t.Fatal("the program does not end")
	}
	<-p.gone
	return p.program.ProcessState.ExitCode()
}

const (
	enter, ctrlC, ctrlD, up, backspace = "\r", "\x03", "\x04", "\x1b[A", "\x7f"
)

// The real program on a real terminal: the editor, the history, wide characters, Ctrl-C at the
// prompt and in an answer.
func TestOnATerminal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	// Without the two tokens that could end it, an answer goes on until it is stopped.
	p := startOnTerminal(t, "run", "--chat", "-n", "0", "--logit-bias", "4093=-100", "--logit-bias", "4095=-100")
	p.waitFor("Say something")
	p.press("wri你好" + backspace + backspace + "te" + enter)
	p.waitFor("\n\t") // the demo model begins with a tab, shown as such
	p.press(ctrlC)
	p.waitFor("(stopped)")
	p.press("dropped")
	p.waitFor("dropped")
	p.press(ctrlC)
	p.waitFor("^C")
	p.press(up + "!" + enter)
	p.waitFor("write!")
	p.waitFor("\n\t")
	p.press(ctrlC)
	p.waitFor("(stopped)")
	p.press("/save " + file + enter)
	p.waitFor("4 messages")
	p.press(ctrlD)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit %d, want %d; the screen shows %q", code, exitOK, p.screen.String())
	}
	m := saved(t, file)
	if len(m) != 4 || m[0].Content != "write" || m[2].Content != "write!" || m[1].Role != chat.Assistant || m[1].Content == "" || m[3].Content == "" {
		t.Errorf("saved %+v, want write and write! with the beginnings of their answers", m)
	}
}

// SIGTERM leaves the terminal as it was found.
func TestTerminalIsGivenBack(t *testing.T) {
	p := startOnTerminal(t, "run", "--chat")
	p.waitFor("Say something")
	p.press("hel")
	p.waitFor("hel")
	if p.flags()&unix.ECHO != 0 {
		t.Error("the editor leaves the echo to the terminal")
	}
	if err := p.program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitTerminated {
		t.Errorf("exit %d, want %d", code, exitTerminated)
	}
	p.isGivenBack()
}

// So it does where the signal comes just as the editor takes the terminal.
func TestTerminalIsGivenBackAtOnce(t *testing.T) {
	for range 5 {
		p := startOnTerminal(t, "run", "--chat")
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			if p.flags()&unix.ECHO == 0 {
				break
			}
		}
		if err := p.program.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(); code != exitTerminated {
			t.Errorf("exit %d, want %d", code, exitTerminated)
		}
		p.isGivenBack()
	}
}

// flags returns what the terminal does with keys.
func (p *terminal) flags() uint32 {
	p.t.Helper()
	now, err := unix.IoctlGetTermios(int(p.keys.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return now.Lflag
}

func (p *terminal) isGivenBack() {
	p.t.Helper()
	if f := p.flags(); f&unix.ECHO == 0 || f&unix.ICANON == 0 || f&unix.ISIG == 0 {
		p.t.Errorf("the terminal's flags are %#x, without echo, lines or signals", f)
	}
}
