package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/term"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/device"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/internal/userdirs"
)

// env is what the process finds around itself; tests give their own.
type env struct {
	os       string                             // runtime.GOOS
	start    time.Time                          // of the process
	now      func() time.Time                   // wall clock
	terminal func(stream any) bool              // whether a stream is a terminal
	cacheDir func() (string, error)             // the user's cache folder
	stateDir func() (string, error)             // the user's folder for what programs keep
	tempDir  string                             // where it goes if there is none
	memory   func() (totalBytes int64, _ error) // see sysmem.Info
	seed     func() uint64                      // a random seed

	freeMemory  func() (bytes int64, _ error) // that can be taken without swapping
	memoryLimit func() (bytes int64)          // of the cgroup; 0 for none

	device     device.Config // what the environment says of devices
	interrupts *interrupts   // Ctrl-C
	dumb       bool          // terminals here understand no escape sequences
	noColour   bool          // the user wants no colours and the like
	apiKeys    string        // of those who may ask a server, as its file of keys has them
	editor     func() (converse.LineReader, error)
	wrapDevice func(gpu.Device) gpu.Device // puts a device of the test's own around it; nil for none
}

func systemEnv(start time.Time) env {
	return env{
		os: runtime.GOOS, start: start, now: time.Now, cacheDir: os.UserCacheDir, stateDir: userdirs.StateDir, tempDir: os.TempDir(),
		memory:      func() (int64, error) { info, err := sysmem.Read(); return info.Total, err },
		freeMemory:  func() (int64, error) { info, err := sysmem.Read(); return info.Available, err },
		memoryLimit: func() int64 { limit, _ := sysmem.Limit(); return limit },
		seed:        func() uint64 { return rand.Uint64() >> 11 }, // 53 bits survive every JSON reader
		device:      device.Environment(),
		interrupts:  &interrupts{}, editor: converse.NewLineEditor,
		dumb: slices.Contains([]string{"", "dumb"}, os.Getenv("TERM")), noColour: os.Getenv("NO_COLOR") != "",
		apiKeys: os.Getenv("MOEFLUX_API_KEYS"),
		terminal: func(stream any) bool {
			f, ok := stream.(*os.File)
			return ok && term.IsTerminal(int(f.Fd()))
		},
	}
}

// invocation is what every command gets: the streams and the surroundings.
type invocation struct {
	stdin  io.Reader
	stdout *resultWriter
	stderr io.Writer
	env    env

	stdinTerminal, stdoutTerminal, stderrTerminal bool

	partial bool // expert files of the model may be missing
}

// say prints a line for the user to stderr.
func (inv *invocation) say(format string, args ...any) {
	fmt.Fprintf(inv.stderr, program+": "+format+"\n", args...)
}
