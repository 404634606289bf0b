package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mustCerts makes certificates, and returns what certs says of them.
func mustCerts(t *testing.T, at time.Time, args ...string) (r certsResult) {
	t.Helper()
	env := testEnv()
	env.Now = func() time.Time { return at }
	o := callWith(t.Context(), env, "", append([]string{"certs", "--json"}, args...)...)
	if o.code != exitOK {
		t.Fatalf("certs %q: exit %d, stderr %q", args, o.code, o.stderr)
	}
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCertificates generates a text with a host by the certificates that certs makes, with and
// without a token, and with what must not be taken: the text is the same, and the engine says why
// the host is not used.
func TestCertificates(t *testing.T) {
	dir, keys := mustInspect(t).Dir, filepath.Join(t.TempDir(), "keys")
	r := mustCerts(t, time.Now(), keys, "127.0.0.1")
	old := mustCerts(t, time.Now().AddDate(-2, 0, 0), filepath.Join(t.TempDir(), "old"), "127.0.0.1")
	token, another := writeFile(t, "token", "0123456789abcdef"), writeFile(t, "token", "0123456789abcdeF")
	host := r.Hosts[0]
	addr := startHost(t, dir, "--tls-cert", host.Cert, "--tls-key", host.Key, "--tls-ca", r.Authority.Cert, "--token-file", token)
	text := []string{"run", "--model", dir, "-p", "package main", "-n", "400", "--temperature", "0", "--expert-io", "buffered", "--expert-memory", "200KiB"}
	want := mustCall(t, "", text...).stdout
	for name, tc := range map[string]struct{ cert, key, ca, token, says string }{
		"engine":                       {r.Engine.Cert, r.Engine.Key, r.Authority.Cert, token, "1 host computed [1-9]"},
		"another token":                {r.Engine.Cert, r.Engine.Key, r.Authority.Cert, another, "the token is wrong; give both sides the same one \\(--token-file of hosts, --hosts-token"},
		"host's certificate":           {host.Cert, host.Key, r.Authority.Cert, token, "it does not take our certificate, and says why in its own log; give both sides"},
		"expired":                      {old.Engine.Cert, old.Engine.Key, r.Authority.Cert, token, "our certificate has expired, by the clock of the other side; make a new one"},
		"one that trusts another":      {r.Engine.Cert, r.Engine.Key, old.Authority.Cert, token, "its certificate does not come from the authority that we trust; give both sides"},
		"a key of another certificate": {r.Engine.Cert, host.Key, r.Authority.Cert, token, "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			o := call(t, "", append(text, "--hosts", addr, "--hosts-cert", tc.cert, "--hosts-key", tc.key, "--hosts-ca", tc.ca, "--hosts-token", tc.token)...)
			if o.code == exitOK && o.stdout != want {
				t.Errorf("the text is %q, want %q", o.stdout, want)
			}
			if !regexp.MustCompile(tc.says).MatchString(o.stderr) || (o.code == exitOK) == (tc.says == "cannot be used") {
				t.Errorf("exit %d, stderr %q, want %q", o.code, o.stderr, tc.says)
			}
		})
	}
	o := call(t, "", "host", dir, "--addr", "127.0.0.1:0", "--tls-cert", old.Hosts[0].Cert, "--tls-key", old.Hosts[0].Key, "--tls-ca", old.Authority.Cert)
	if o.code != exitFailed || !strings.Contains(o.stderr, "has expired on ") || !strings.Contains(o.stderr, "make a new one, as by the command certs with --renew") {
		t.Errorf("a host with an expired certificate: exit %d, stderr %q", o.code, o.stderr)
	}
}

// TestCertsUsage makes nothing of what it refuses, and says what to do.
func TestCertsUsage(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	mustCerts(t, time.Now(), keys, "h")
	for _, tc := range []struct {
		args []string
		says string
	}{
		{[]string{keys, "10.0.0.2:8090"}, "write 10.0.0.2"}, {[]string{keys, "ca"}, "full name of the host"}, {[]string{keys, "--days", "0"}, "--days 0"}, {[]string{keys, "h"}, "give --renew"}, {nil, "<dir>"},
	} {
		if o := call(t, "", append([]string{"certs"}, tc.args...)...); o.code != exitUsage || !strings.Contains(o.stderr, tc.says) {
			t.Errorf("certs %q: exit %d, stderr %q", tc.args, o.code, o.stderr)
		}
	}
	o := mustCall(t, "", "certs", keys, "h", "--renew")
	for _, says := range []string{"kept " + filepath.Join(keys, "engine.pem"), "made " + filepath.Join(keys, "h.pem"), "--addr h:8090 --tls-cert h.pem --tls-key h.key --tls-ca ca.pem"} {
		if !strings.Contains(o.stdout, says) {
			t.Errorf("certs does not say %q: %s", says, o.stdout)
		}
	}
}
