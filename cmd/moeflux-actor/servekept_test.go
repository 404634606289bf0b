package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// killed is a serve process of its own.
type killed struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
}

// startServe starts the program with a folder for states.
func startServe(t *testing.T, dir string, args ...string) *killed {
	t.Helper()
	k := &killed{t: t}
	k.cmd = exec.Command(os.Args[0], append([]string{"serve", "--addr", "127.0.0.1:0", "--cache-dir", sharedCache, "--state-dir", dir}, args...)...)
	k.cmd.Env = append(os.Environ(), asProgram+"=1")
	said, err := k.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.kill)
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if m := saidURL.FindStringSubmatch(lines.Text() + "\n"); m != nil {
			k.url = m[1]
			go io.Copy(io.Discard, said)
			return k
		}
	}
	t.Fatalf("the server ended without an address: %v", lines.Err())
	return nil
}

// kill ends the process as nothing can prevent.
func (k *killed) kill() {
	if k.cmd.ProcessState == nil {
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
	}
}

type told struct {
	Choices []struct{ Message struct{ Content string } }
	Usage   struct {
		Prompt  int `json:"prompt_tokens"`
		New     int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

type says struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// open sends a conversation.
func (k *killed) open(key string, stream bool, tokens int, messages ...says) *http.Response {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"messages": messages, "max_tokens": tokens, "temperature": 0, "stream": stream})
	if err != nil {
		k.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(k.t.Context(), "POST", k.url+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		k.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		k.t.Fatalf("status %d", resp.StatusCode)
	}
	return resp
}

func (k *killed) ask(key string, messages ...says) (got told) {
	k.t.Helper()
	resp := k.open(key, false, 16, messages...)
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		k.t.Fatal(err)
	}
	return got
}

// A server is killed in the middle of a conversation's answer, and started again: the next turn
// reads only the turn that was running, and answers as if nothing had happened. Another key's
// conversation is known to that key alone.
func TestServeKilled(t *testing.T) {
	dir, keys := t.TempDir(), writeFile(t, "keys", "sk-first-first name=a\nsk-other-other name=b\n")
	const mine, other = "sk-first-first", "sk-other-other"
	k := startServe(t, dir, "--api-key-file", keys)
	talk := []says{{"user", strings.Repeat("Write a function that adds numbers. ", 10)}}
	first := k.ask(mine, talk...)
	if first.Usage.Details.Cached != 0 || len(first.Choices) != 1 {
		t.Fatalf("a new conversation: %+v", first)
	}
	talk = append(talk, says{"assistant", first.Choices[0].Message.Content}, says{"user", "And now with tests."})
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) { // the states of the prompt and of the answer
		positions, states := textsBelow(t, dir)
		if positions >= first.Usage.Prompt+first.Usage.New && states >= 2 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%d positions and %d recurrent states are written", positions, states)
		}
	}
	resp := k.open(mine, true, 500, talk...)
	if _, err := io.ReadFull(resp.Body, make([]byte, 200)); err != nil { // it answers
		t.Fatal(err)
	}
	k.kill()
	resp.Body.Close()

	k = startServe(t, dir, "--api-key-file", keys)
	if got := k.ask(other, talk...); got.Usage.Details.Cached != 0 {
		t.Errorf("another key is told of %d tokens", got.Usage.Details.Cached)
	}
	second := k.ask(mine, talk...)
	if least := first.Usage.Prompt + first.Usage.New - 1; second.Usage.Details.Cached < least {
		t.Errorf("%d tokens are known after the restart, want the first turn's %d", second.Usage.Details.Cached, least)
	}
	plain := startServe(t, t.TempDir(), "--state-disk", "1", "--api-key-file", keys)
	if want := plain.ask(mine, talk...); want.Choices[0] != second.Choices[0] || want.Usage.Details.Cached != 0 {
		t.Errorf("after the restart it says %+v, a server that keeps nothing says %+v", second, want)
	}
}

// textsBelow returns how many positions, and how many recurrent states, are on disk.
func textsBelow(t *testing.T, dir string) (positions, states int) {
	t.Helper()
	folder, err := store.Dir(filepath.Join(dir, "texts"))
	if err != nil {
		t.Fatal(err)
	}
	texts, err := store.Open(t.Context(), folder, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := texts.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if positions += e.Positions; e.Positions == 0 {
			states++
		}
	}
	return positions, states
}
