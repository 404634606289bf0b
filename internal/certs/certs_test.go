package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func mustOpen(t *testing.T, dir string, now time.Time) *Authority {
	t.Helper()
	a, err := Open(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// load reads a certificate with its key, which must fit.
func load(t *testing.T, f Files) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// TestCertificates verifies what is made as each side of a connection does: a host's certificate
// holds for its own name, and neither passes for the other.
func TestCertificates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	a := mustOpen(t, dir, now)
	again := mustOpen(t, dir, now) // signs with the same key
	if !a.Made || again.Made {
		t.Errorf("made: %v, then %v", a.Made, again.Made)
	}
	roots := x509.NewCertPool()
	roots.AddCert(load(t, a.Files))
	for _, tc := range []struct{ name, other string }{{"10.0.0.2", "10.0.0.3"}, {"gpu-1.example.org", "gpu-2.example.org"}, {"fe80::1", "fe80::2"}} {
		_, made, err := again.Make([]string{tc.name}, Wish{Days: 30})
		if err != nil {
			t.Fatal(err)
		}
		c := load(t, made[0])
		for _, v := range []struct {
			name string
			at   time.Time
			use  x509.ExtKeyUsage
			ok   bool
		}{
			{tc.name, now, x509.ExtKeyUsageServerAuth, true},
			{tc.name, now.Add(-time.Minute), x509.ExtKeyUsageServerAuth, true}, // a clock that is slow
			{tc.name, now.AddDate(0, 0, 30).Add(-time.Second), x509.ExtKeyUsageServerAuth, true},
			{tc.name, now.AddDate(0, 0, 30).Add(time.Second), x509.ExtKeyUsageServerAuth, false},
			{tc.other, now, x509.ExtKeyUsageServerAuth, false},
			{tc.name, now, x509.ExtKeyUsageClientAuth, false},
		} {
			// IP addresses are in brackets here, or they are taken for names.
			name := v.name
			if net.ParseIP(name) != nil {
				name = "[" + name + "]"
			}
			if _, err := c.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: v.at, KeyUsages: []x509.ExtKeyUsage{v.use}}); (err == nil) != v.ok {
				t.Errorf("the certificate of %s as one of %s at %v for use %d: %v", tc.name, v.name, v.at, v.use, err)
			}
		}
	}
	f, _, err := a.Make(nil, Wish{Days: 1e5, Renew: true}) // longer than the authority holds
	if err != nil {
		t.Fatal(err)
	}
	engine := load(t, f)
	for use, ok := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageClientAuth: true, x509.ExtKeyUsageServerAuth: false} {
		if _, err := engine.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use}}); (err == nil) != ok {
			t.Errorf("the engine's certificate for use %d: %v", use, err)
		}
	}
	if !engine.NotAfter.Equal(a.Expires) || !f.Expires.Equal(a.Expires) {
		t.Errorf("the engine's certificate holds until %v, the authority until %v", engine.NotAfter, a.Expires)
	}
	for _, f := range []Files{a.Files, f} {
		if i, err := os.Stat(f.Key); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("others may read %s: %v, error %v", f.Key, i.Mode(), err)
		}
	}
}

// TestExisting replaces what exists only if that is asked for, and else makes nothing.
func TestExisting(t *testing.T) {
	dir := t.TempDir()
	a := mustOpen(t, dir, now)
	engine, first, err := a.Make([]string{"h"}, Wish{Days: 1})
	if err != nil {
		t.Fatal(err)
	}
	old, oldEngine := load(t, first[0]), load(t, engine)
	for _, names := range [][]string{{"new", "h"}, {"new", "new"}} {
		if _, _, err := a.Make(names, Wish{Days: 9}); !errors.As(err, new(*ExistsError)) {
			t.Errorf("%v: %v", names, err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 6 || !load(t, first[0]).Equal(old) {
		t.Errorf("a certificate was made or replaced: %v", all)
	}
	engine, second, err := a.Make([]string{"h"}, Wish{Days: 9, Renew: true})
	if err != nil {
		t.Fatal(err)
	}
	if c := load(t, second[0]); c.Equal(old) || c.SerialNumber.Cmp(old.SerialNumber) == 0 || c.NotAfter.Sub(old.NotAfter) != 8*24*time.Hour {
		t.Errorf("renewed: until %v, serial number %v, before %v and %v", c.NotAfter, c.SerialNumber, old.NotAfter, old.SerialNumber)
	}
	if engine.Made || !load(t, engine).Equal(oldEngine) || !engine.Expires.Equal(oldEngine.NotAfter) {
		t.Errorf("the engine's certificate was not kept: %+v", engine)
	}
	if engine, _, err = a.Make(nil, Wish{Days: 9, Renew: true}); err != nil || !engine.Made || load(t, engine).Equal(oldEngine) {
		t.Errorf("the engine's certificate was not renewed: %+v, error %v", engine, err)
	}
}

// TestBrokenAuthority refuses a folder whose authority cannot sign, and leaves it as it is.
func TestBrokenAuthority(t *testing.T) {
	another := mustOpen(t, t.TempDir(), now)
	for name, tc := range map[string]struct {
		spoil func(a *Authority) error
		at    time.Time
		why   string
	}{
		"no key":      {func(a *Authority) error { return os.Remove(a.Key) }, now, "lacks a file"},
		"no cert":     {func(a *Authority) error { return os.Remove(a.Cert) }, now, "lacks a file"},
		"another key": {func(a *Authority) error { return os.Rename(another.Key, a.Key) }, now, "is not the key of"},
		"no PEM":      {func(a *Authority) error { return os.WriteFile(a.Cert, []byte("x"), 0o600) }, now, "holds no certificate"},
		"expired":     {func(*Authority) error { return nil }, now.AddDate(authorityYears, 0, 1), "has expired on 2036-11-28"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tc.spoil(mustOpen(t, dir, now)); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadDir(dir)
			if _, err := Open(dir, tc.at); err == nil || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("got %v, want %q", err, tc.why)
			}
			if after, _ := os.ReadDir(dir); len(after) != len(before) {
				t.Errorf("before %v, after %v", before, after)
			}
		})
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"10.0.0.2": true, "::1": true, "localhost": true, "a.b-c.d": true, "under_score.lan": true,
		"": false, "ca": false, "engine": false, "10.0.0.2:8090": false, "[::1]:8090": false, "../x": false, "a/b": false, "a..b": false, "-a": false, "a b": false, "*.example.org": false,
		strings.Repeat("a.", 127) + "b": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestNoFolder names a file in place of a folder.
func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, now); err == nil || !strings.Contains(err.Error(), "is not a folder") {
		t.Errorf("an authority in a file: %v", err)
	}
}
