// Package testenv finds the programs that tests run beside Go: compilers and emulators.
//
// A machine without them still passes go test ./...: such a test skips itself and says what is
// missing. Where MOEFLUX_REQUIRE_TOOLS is 1, as in .ci/run, a missing tool is a failure instead, so
// that no test is left out unnoticed.
package testenv

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Required is the environment variable that turns a missing tool into a failure.
const Required = "MOEFLUX_REQUIRE_TOOLS"

// The programs that tests look for, in order of preference.
var (
	cCompilers = []string{"gcc", "clang", "cc"}
	clangs     = []string{"clang++", "clang++-19", "clang++-16", "clang++-14"}
)

// Find returns the path of the first of names that PATH has. Without any it skips the test, or
// fails it under Required; packages says what to install.
func Find(t testing.TB, packages string, names ...string) string {
	t.Helper()
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	Missing(t, "no "+strings.Join(names, ", ")+" in PATH (Debian, Ubuntu: apt-get install "+packages+")")
	return ""
}

// CCompiler returns the path of a C compiler.
func CCompiler(t testing.TB) string {
	t.Helper()
	return Find(t, "gcc libc6-dev", cCompilers...)
}

// Clang returns the path of clang++, the only compiler that tells address spaces apart.
func Clang(t testing.TB) string {
	t.Helper()
	return Find(t, "clang", clangs...)
}

// Missing ends a test that lacks a tool: it skips it, or fails it under Required.
func Missing(t testing.TB, what string) {
	t.Helper()
	what = strings.Join(strings.Fields(what), " ") // one line
	if os.Getenv(Required) == "1" {
		t.Fatalf("%s=1 and %s", Required, what)
	}
	t.Skip(what)
}
