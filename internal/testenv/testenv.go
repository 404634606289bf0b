// Package testenv is what tests learn from the machine: which programs it has beside Go, and how
// much time there is.
//
// A machine without compilers still passes go test ./...: a test that needs one skips itself and
// says what is missing. Where MOEFLUX_REQUIRE_TOOLS is 1, as in .ci/run, a missing tool is a
// failure instead, so that no test is left out unnoticed.
package testenv

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Environment variables that tests read.
const (
	// Required is 1 where a missing tool is a failure, or names the tools of which that is true:
	// "gcc,g++".
	Required = "MOEFLUX_REQUIRE_TOOLS"
	// Thorough is 1 where tests that try many cases try many more, for minutes.
	Thorough = "MOEFLUX_THOROUGH"
)

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
	Missing(t, "no "+strings.Join(names, ", ")+" in PATH (Debian, Ubuntu: apt-get install "+packages+")", names...)
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

// CXXCompilers are the names of compilers that build kernels for the emulator.
var CXXCompilers = []string{"g++", "clang++", "c++"}

// Missing ends a test that lacks all the tools of these names: it skips it, or fails it under
// Required.
func Missing(t testing.TB, what string, names ...string) {
	t.Helper()
	what = strings.Join(strings.Fields(what), " ") // one line
	required := os.Getenv(Required)
	for _, r := range strings.Split(required, ",") {
		if r == "1" || slices.Contains(names, r) {
			t.Fatalf("%s=%s and %s", Required, required, what)
		}
	}
	t.Skip(what)
}

// Rounds returns how many cases a test tries, or which n-th ones: few under -short, many under
// Thorough.
func Rounds(few, usual, many int) int {
	switch {
	case os.Getenv(Thorough) == "1":
		return many
	case testing.Short():
		return few
	}
	return usual
}

// Share reports whether a test tries a case of this name, if it tries one in n of them: under
// Thorough it tries all. Which ones is drawn by the names of test and case, so that two tests with
// the same cases, as of two variants, have shares of their own, the same in every run.
func Share(t testing.TB, name string, n int) bool {
	if n < 2 || os.Getenv(Thorough) == "1" {
		return true
	}
	return draw(t, name, n) == 0
}

// ShareOf is Share for the i-th of some cases of a kind, of which it tries at least one.
func ShareOf(t testing.TB, kind string, i, of, n int) bool {
	if n < 2 || os.Getenv(Thorough) == "1" {
		return true
	}
	return i%n == draw(t, kind, min(n, of))
}

// draw returns a number below n, which the names of the test and of what is drawn for decide.
func draw(t testing.TB, name string, n int) int {
	h := fnv.New64a()
	h.Write([]byte(t.Name() + "/" + name))
	return rand.New(rand.NewPCG(h.Sum64(), 0)).IntN(n)
}
