package server

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// removal is a check that is taken out of the source, and the test that notices.
type removal struct {
	what     string
	file     string // from the module's root
	old, new string
	test     string // FOLDER TestName
}

// removals are the checks that keep a server safe, by what they defend against. A check is here
// once for each way to lose it.
var removals = []removal{
	// Nobody from outside without a key.
	{"only loopback without keys", "server/listen.go", "len(s.keys.All()) == 0 &&", "len(s.keys.All()) < 0 &&", "server TestListenOpen"},
	// Pages of other sites: names that point here, requests across sites, answers that they read.
	{"the Host header", "server/guard.go", "if !s.knownHost(r.Host) {", "if false {", "server TestHosts"},
	{"requests across sites", "server/guard.go", "if err := cross.Check(r); err != nil {", "if err := cross.Check(r); err != nil && false {", "server TestOrigins"},
	{"who may read answers", "server/guard.go", `if origin == "" || !slices.Contains(s.o.Origins, origin) {`, `if origin == "" {`, "server TestOrigins"},
	{"forms of other sites", "server/guard.go", `kind != "application/json"`, `kind == ""`, "server TestContentType"},
	// Keys: compared, asked for on every path, and in no log.
	{"the comparison of keys", "server/access/ring.go", "if subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {", "if subtle.ConstantTimeCompare(hash[:], k.hash[:]) >= 0 {", "server TestKeys"},
	{"keys on every path", "server/guard.go", "!needsNoKey(r.URL.Path)", `strings.HasPrefix(r.URL.Path, "/v1/")`, "server TestKeys"},
	{"no key in the log", "server/accesslog.go", `"key", v.Key.Name`, `"key", v.Key.Secret`, "server TestLog"},
	{"the inside is for admins", "server/insiders.go", "if !k.Admin {", "if false {", "server TestInsiders"},
	{"the inside is for this machine", "server/insiders.go", "!peer.Addr().Unmap().IsLoopback()", "!peer.Addr().IsValid()", "server TestInsiders"},
	{"the inside is not for proxies", "server/insiders.go", "|| passedOn {", "|| passedOn && false {", "server TestInsiders"},
	// Sizes and times of requests.
	{"the size of a body", "server/guard.go", "r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxBody)", "", "server TestBodyLimit"},
	{"the size that a body says", "server/guard.go", "if r.ContentLength > s.o.MaxBody {", "if false {", "server TestDeclaredBody"},
	{"the time of a body", "server/guard.go", "_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.o.Patience))", "", "server TestSlowBody"},
	{"the size of headers", "server/listen.go", "MaxHeaderBytes: maxHeader,", "", "server TestListenBounds"},
	{"the time of headers", "server/listen.go", "ReadHeaderTimeout: min(headerTime, s.o.Patience),", "", "server TestSlowHeader"},
	{"the number of connections", "server/listen.go", "netutil.LimitListener(l, cmp.Or(c.Connections, defaultConnections))", "netutil.LimitListener(l, cmp.Or(1<<20, c.Connections, defaultConnections))", "server TestListenBounds"},
	// Numbers and lists within bounds.
	{"whole numbers", "server/body/body.go", "if v < float64(least) || v > float64(most) {", "if false {", "server TestRefused"},
	{"numbers", "server/body/body.go", "if math.IsNaN(v) || v < least || v > most {", "if math.IsNaN(v) {", "server TestRefused"},
	{"lists", "server/body/body.go", "if len(v) > most {", "if false {", "server TestRefused"},
	// Schemas, patterns and grammars are compiled with limits before the engine sees them.
	{"formats", "server/api/format.go", "if err := c.Validate(); err != nil {", "if err := c.Validate(); err != nil && false {", "server TestRefused"},
	// Templates get the variables that clients may set, and only scalars.
	{"names of variables", "server/api/format.go", "if !templateArgs[name] {", "if false {", "server TestRefused"},
	{"kinds of variables", "server/api/format.go", "case map[string]any, []any:", "case chan int:", "server TestRefused"},
	// Text of clients never becomes a special token.
	{"texts of messages", "chat.go", "Messages: m.guarded(d, messages)", "Messages: messages", ". TestTextIsNoSpecialToken"},
	{"texts of tools", "chat.go", "Tools: m.guardedTools(r.Tools)", "Tools: r.Tools", ". TestToolsAreGuarded"},
	{"guards are no text", "chat.go", "m.text.EncodeGuarded(text)", "m.text.Encode(text, false)", ". TestTextIsNoSpecialToken"},
	// What a key may have, and what it may know of others.
	{"requests at once", "server/access/quota.go", "case l.running > 0 && q.inside >= l.running+l.queued:", "case l.running > 0 && q.inside < 0:", "server TestRunningLimit"},
	{"requests a minute", "server/access/quota.go", "case l.requests > 0 && q.requests.level < 1:", "case l.requests < 0:", "server TestQuotaHeadersOfMessages"},
	{"tokens a minute", "server/access/quota.go", "case l.tokens > 0 && q.tokens.level < 1:", "case l.tokens < 0:", "server TestQuotaHeaders"},
	{"prefixes of others", "server/apis.go", "if !s.o.SharePrefixes {", "if false {", "server TestScopes"},
	{"conversations of others", "server/api/responses/kept.go", "c.key != key ||", "", "server TestPreviousResponse"},
	// The page.
	{"its policy", "server/page/page.go", `h.Set("Content-Security-Policy", policy)`, "_ = policy", "server TestPageFiles"},
	{"types are not guessed", "server/guard.go", `h.Set("X-Content-Type-Options", "nosniff")`, "", "server TestPageFiles"},
	// Failures: of a handler, of a model, of an engine.
	{"a handler panics", "server/guard.go", "s.recovered(log, r, span, recover())", "_ = s.recovered", "server TestHandlerPanics"},
	{"a model fails", "server/health.go", "range s.health.failed()", "range s.health.failed()[:0]", "server TestReady"},
	{"an engine dies", "server/health.go", "bad := s.ill()", "bad := make(map[string]error)", "server TestReadyStoppedEngine"},
}

// TestRemovals finds each check where the list says that it is, and its test; run thoroughly, it
// takes one check after the other out, and the test must fail.
func TestRemovals(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	run := testenv.Rounds(0, 0, len(removals))
	for i, r := range removals {
		t.Run(r.what, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join(root, r.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), r.old); n != 1 {
				t.Fatalf("%s has %q %d times", r.file, r.old, n)
			}
			folder, name, _ := strings.Cut(r.test, " ")
			if !hasTest(t, filepath.Join(root, folder), name) {
				t.Fatalf("%s has no %s", folder, name)
			}
			if i < run {
				r.notices(t, root, []byte(strings.Replace(string(source), r.old, r.new, 1)))
			}
		})
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}

// notices runs the test of a removal with another source of the file: it must fail, and not because
// that does not compile.
func (r *removal) notices(t *testing.T, root string, source []byte) {
	changed, overlay := filepath.Join(t.TempDir(), "changed.go"), filepath.Join(t.TempDir(), "overlay.json")
	plan, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, r.file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{changed: source, overlay: plan} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, name, _ := strings.Cut(r.test, " ")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout", "3m", "-overlay", overlay, "-run", "^"+name+"$", "./"+folder)
	c.Dir = root
	c.Env = append(os.Environ(), testenv.Thorough+"=")
	out, err := c.CombinedOutput()
	if ctx.Err() != nil || err == nil || !strings.Contains(string(out), "--- FAIL: "+name) {
		t.Errorf("without the check %s ends with %v:\n%s", r.test, err, out)
	}
}
