package process

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/hub"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/internal/userdirs"
)

// Program is the name of the program.
const Program = "moeflux-actor"

// Env is what the process finds around itself; tests give their own.
type Env struct {
	OS       string                             // runtime.GOOS
	Start    time.Time                          // of the process
	Now      func() time.Time                   // wall clock
	Terminal func(stream any) bool              // whether a stream is a terminal
	CacheDir func() (string, error)             // the user's cache folder
	StateDir func() (string, error)             // the user's folder for what programs keep
	TempDir  string                             // where it goes if there is none
	Memory   func() (totalBytes int64, _ error) // see sysmem.Info
	Seed     func() uint64                      // a random seed

	FreeMemory  func() (bytes int64, _ error) // that can be taken without swapping
	MemoryLimit func() (bytes int64)          // of the cgroup; 0 for none

	Device     device.Config // what the environment says of devices
	Interrupts *Interrupts   // Ctrl-C
	Dumb       bool          // terminals here understand no escape sequences
	NoColour   bool          // the user wants no colours and the like
	APIKeys    string        // of those who may ask a server, as its file of keys has them
	Hub        hub.Config    // where models are published, and who asks there
	Editor     func() (converse.LineReader, error)
	WrapDevice func(gpu.Device) gpu.Device // puts a device of the test's own around it; nil for none
}

// SystemEnv returns the surroundings of a process that began at start.
func SystemEnv(start time.Time) Env {
	return Env{
		OS: runtime.GOOS, Start: start, Now: time.Now, CacheDir: os.UserCacheDir, StateDir: userdirs.StateDir, TempDir: os.TempDir(),
		Memory:      func() (int64, error) { info, err := sysmem.Read(); return info.Total, err },
		FreeMemory:  func() (int64, error) { info, err := sysmem.Read(); return info.Available, err },
		MemoryLimit: func() int64 { limit, _ := sysmem.Limit(); return limit },
		Seed:        func() uint64 { return rand.Uint64() >> 11 }, // 53 bits survive every JSON reader
		Device:      device.Environment(),
		Interrupts:  &Interrupts{}, Editor: converse.NewLineEditor,
		Dumb: slices.Contains([]string{"", "dumb"}, os.Getenv("TERM")), NoColour: os.Getenv("NO_COLOR") != "",
		APIKeys: os.Getenv("MOEFLUX_API_KEYS"),
		Hub:     hub.Config{Endpoint: os.Getenv("HF_ENDPOINT"), Token: os.Getenv("HF_TOKEN"), Transport: hub.NewTransport(http.ProxyFromEnvironment)},
		Terminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
	}
}

// Invocation is what every command gets: the streams and the surroundings.
type Invocation struct {
	Stdin  io.Reader
	Stdout *Results
	Stderr io.Writer
	Env    Env

	StdinTerminal, StdoutTerminal, StderrTerminal bool

	Partial bool // expert files of the model may be missing
}

// Say prints a line for the user to stderr.
func (inv *Invocation) Say(format string, args ...any) {
	fmt.Fprintf(inv.Stderr, Program+": "+format+"\n", args...)
}
