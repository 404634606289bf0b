package actors_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, a.cert = a.make("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)})
	return a
}

// make writes NAME.pem and NAME.key, of a certificate that the authority signs, or itself.
func (a *authority) make(name string, c *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject, c.NotBefore = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}, time.Now().Add(-2*time.Hour)
	by, with := a.cert, a.key
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return key, made
}

// files are those of a name, of a certificate that ends some time from now, for addresses.
func (a *authority) files(name string, ends time.Duration, addrs ...string) secrets.Files {
	c := &x509.Certificate{NotAfter: time.Now().Add(ends)}
	for _, addr := range addrs {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(addr))
	}
	a.make(name, c)
	in := func(file string) string { return filepath.Join(a.dir, file) }
	return secrets.Files{Cert: in(name + ".pem"), Key: in(name + ".key"), CA: in("ca.pem")}
}

// TestHostsTLS has a host serve an engine with a certificate of their authority, and no other. Both
// sides say what is wrong.
func TestHostsTLS(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	ours, theirs := newAuthority(t), newAuthority(t)
	served := ours.files("host", time.Hour, "127.0.0.1")
	for _, tc := range []struct {
		name         string
		host, engine secrets.Files
		says         string // of the engine, why the host is not used; "" if it is
		hostSays     string
	}{
		{"ours", served, ours.files("engine", time.Hour), "", ""},
		{"none", served, secrets.Files{}, "TLS is for both sides or for none", "does not speak TLS; give certificates to both sides"},
		{"of an engine alone", secrets.Files{}, ours.files("alone", time.Hour), "TLS is for both sides or for none", "out of place"},
		{"expired", served, ours.files("late", -time.Hour), "our certificate has expired, by the clock of the other side; make a new one", "its certificate has expired on " + time.Now().Add(-time.Hour).UTC().Format("2006-01-02 15:")},
		{"of another authority", served, secrets.Files{Cert: theirs.files("x", time.Hour).Cert, Key: filepath.Join(theirs.dir, "x.key"), CA: served.CA},
			"our certificate does not come from the authority that it trusts; give both sides", "its certificate does not come from the authority that we trust; give both sides"},
		{"that trusts another authority", served, secrets.Files{Cert: served.Cert, Key: served.Key, CA: filepath.Join(theirs.dir, "ca.pem")},
			"its certificate does not come from the authority that we trust; give both sides", "it does not take our certificate, and says why in its own log"},
		{"of an expired host", ours.files("old", -time.Hour, "127.0.0.1"), ours.files("engine2", time.Hour), "its certificate has expired on ", ""},
		{"of a host elsewhere", ours.files("far", time.Hour, "10.0.0.2"), ours.files("engine3", time.Hour), "its certificate is not for 127.0.0.1; make one for the name or address that engines dial", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log, hostLog testenv.Log
			cfg := asksHosts(dir, expertHost(t, expert.Config{Model: dir, Secrets: tc.host, Logger: slog.New(slog.NewTextHandler(&hostLog, nil))}))
			cfg.HostsCert, cfg.HostsKey, cfg.HostsCA = tc.engine.Cert, tc.engine.Key, tc.engine.CA
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			e := open(t, cfg)
			for range 500 {
				if strings.Contains(log.String(), "used") && (tc.hostSays == "" || hostLog.String() != "") {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			used := tc.says == ""
			if got := log.String(); strings.Contains(got, "host is used") != used || !strings.Contains(got, tc.says) {
				t.Errorf("the engine says %s, want the host used: %v, %q", got, used, tc.says)
			}
			if !strings.Contains(hostLog.String(), tc.hostSays) {
				t.Errorf("the host says %s, want %q", hostLog.String(), tc.hostSays)
			}
			if _, err := transcript(sequence(t, e), prompt(1, 5, e.Model().VocabSize), 2); err != nil {
				t.Error(err)
			}
			if uses := statsOf(t, e).Hosts[0].Uses; uses > 0 != used {
				t.Errorf("the host has computed %d uses", uses)
			}
		})
	}
}

// TestCertificateRenewed has a host and an engine start with certificates that end soon, and
// replaces both files of each one after the other. Connections that begin meanwhile still get the
// ones before, and then those of the new files; nothing is started anew.
func TestCertificateRenewed(t *testing.T) {
	a := newAuthority(t)
	files := map[string]secrets.Files{"host": a.files("host", time.Minute, "127.0.0.1"), "engine": a.files("engine", time.Minute)}
	host, engine := files["host"], files["engine"]
	server, err := host.Server()
	if err != nil {
		t.Fatal(err)
	}
	client, err := engine.Client()
	if err != nil {
		t.Fatal(err)
	}
	client.ServerName = "127.0.0.1"
	shown := func() [2]time.Time {
		t.Helper()
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		s, c := tls.Server(far, server), tls.Client(near, client)
		failed := make(chan error, 1)
		go func() { failed <- s.Handshake() }()
		if err := errors.Join(c.Handshake(), <-failed); err != nil {
			t.Fatal(err)
		}
		return [2]time.Time{c.ConnectionState().PeerCertificates[0].NotAfter, s.ConnectionState().PeerCertificates[0].NotAfter}
	}
	before := shown()
	for name, ends := range map[string]time.Duration{"host": time.Hour, "engine": 2 * time.Hour} {
		old, err := os.ReadFile(files[name].Cert)
		if err != nil {
			t.Fatal(err)
		}
		a.files(name, ends, "127.0.0.1")
		renewed, err := os.ReadFile(files[name].Cert)
		if err != nil {
			t.Fatal(err)
		}
		replace := func(text []byte) {
			if err := durable.WriteFile(files[name].Cert, durable.Shared, text); err != nil {
				t.Fatal(err)
			}
		}
		replace(old) // with the new key
		if got := shown(); got[0] != before[0] && name == "host" || got[1] != before[1] && name == "engine" {
			t.Errorf("with a key of another certificate of the %s sides show what ends at %v, before at %v", name, got, before)
		}
		replace(renewed)
	}
	if got := shown(); time.Until(got[0]) < 50*time.Minute || time.Until(got[1]) < 110*time.Minute {
		t.Errorf("sides show certificates that end at %v", got)
	}
}

// TestHostAddresses refuses what would be sent to other machines for everybody to read.
func TestHostAddresses(t *testing.T) {
	for addr, ok := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "10.0.0.2:1": false, ":8090": false, "0.0.0.0:1": false, "example.org:1": false, "127.0.0.1": false} {
		if err := new(secrets.Files).CheckAddr(addr); (err == nil) != ok {
			t.Errorf("%s without TLS: %v", addr, err)
		}
		if err := (&secrets.Files{Cert: "x"}).CheckAddr(addr); (err == nil) != (addr != "127.0.0.1") {
			t.Errorf("%s with TLS: %v", addr, err)
		}
	}
}
