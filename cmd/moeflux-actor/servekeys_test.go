package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// A key that is added to the file counts while the server runs.
func TestServeFollowsKeys(t *testing.T) {
	file := writeFile(t, "keys", "sk-first-first name=me\n")
	p := serve(t, "--api-key-file", file)
	status := func(key string) int {
		req, err := http.NewRequestWithContext(t.Context(), "GET", p.url+"/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if a, b := status("sk-first-first"), status("sk-second-second"); a != http.StatusOK || b != http.StatusUnauthorized {
		t.Fatalf("at first: %d, %d", a, b)
	}
	if err := os.WriteFile(file, []byte("sk-second-second name=you\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); status("sk-second-second") != http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("the new key does not count; the log says %q", p.said.String())
		}
	}
	if s := status("sk-first-first"); s != http.StatusUnauthorized {
		t.Errorf("the old key still counts: %d", s)
	}
}

// Keys may come from the environment.
func TestServeKeysOfEnvironment(t *testing.T) {
	for text, part := range map[string]string{"sk-first-first name=me\nsk-first-first": "is there twice", "sk-1 colour=red": "MOEFLUX_API_KEYS cannot be read"} {
		e := testEnv()
		e.APIKeys = text
		var errs strings.Builder
		if code := run(t.Context(), []string{"serve", "--addr", "127.0.0.1:0"}, strings.NewReader(""), &errs, &errs, e); code == exitOK || !strings.Contains(errs.String(), part) {
			t.Errorf("%q: exit %d, %q", text, code, errs.String())
		}
	}
}
