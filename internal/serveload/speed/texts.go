package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

const modelName = "model"

// text is what came of one text.
type text struct {
	said   string
	tokens int
	known  int           // tokens of the prompt that were not read
	first  time.Duration // until the first text
}

// request is how a text is asked for in the process.
func request(ids []int32, tokens int) moeflux.Request {
	return moeflux.Request{PromptIDs: ids, MaxTokens: tokens, Sampling: moeflux.Sampling{Temperature: new(0.0)}}
}

// generate asks the model.
func (b *bed) generate(ctx context.Context, ids []int32, tokens int) (*text, error) {
	t, began := new(text), time.Now()
	for e, err := range b.model.Generate(ctx, request(ids, tokens)) {
		if err != nil {
			return nil, err
		}
		if e.Text != "" && t.first == 0 {
			t.first = time.Since(began)
		}
		if e.End != nil {
			t.said, t.tokens, t.known = e.End.Message.Content, e.End.Usage.NewTokens, e.End.Usage.ReusedTokens
		}
	}
	return t, t.whole(tokens)
}

// whole reports a text that ended before its time: what it took says nothing then.
func (t *text) whole(tokens int) error {
	if t.tokens != tokens {
		return fmt.Errorf("a text ended after %d of %d tokens: take other lengths, or a model whose texts do not end", t.tokens, tokens)
	}
	return nil
}

// fetch asks the server for a stream. What came is read at once, and understood afterwards: what a
// client makes of it is not the server's.
func (b *bed) fetch(ctx context.Context, ids []int32, tokens int) (*text, error) {
	body, err := json.Marshal(map[string]any{
		"model": modelName, "prompt": ids, "max_tokens": tokens, "temperature": 0, "stream": true, "stream_options": map[string]bool{"include_usage": true},
	})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return nil, fmt.Errorf("%s: %s", resp.Status, said)
	}
	t := new(text)
	var lines [][]byte
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadBytes('\n')
		if t.first == 0 && bytes.Contains(line, []byte(`"text":"`)) && !bytes.Contains(line, []byte(`"text":""`)) {
			t.first = time.Since(began)
		}
		lines = append(lines, line)
		if err == io.EOF {
			return t, errors.Join(t.read(lines), t.whole(tokens))
		}
		if err != nil {
			return nil, err
		}
	}
}

// read takes in the lines of a stream.
func (t *text) read(lines [][]byte) error {
	done := false
	for _, line := range lines {
		data, is := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if !is {
			continue
		}
		if string(data) == "[DONE]" {
			done = true
			continue
		}
		var m struct {
			Error   json.RawMessage
			Choices []struct{ Text string }
			Usage   *struct {
				Tokens  int `json:"completion_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		if m.Error != nil {
			return fmt.Errorf("the server says %s", m.Error)
		}
		for _, c := range m.Choices {
			t.said += c.Text
		}
		if m.Usage != nil {
			t.tokens, t.known = m.Usage.Tokens, m.Usage.Details.Cached
		}
	}
	if !done {
		return errors.New("a stream ended early")
	}
	return nil
}

// asker asks for a text.
type asker func(ctx context.Context, ids []int32, tokens int) (*text, error)

// together asks for texts at once, and returns them and how long all took.
func together(ctx context.Context, ask asker, prompts [][]int32, tokens int) ([]*text, time.Duration, error) {
	texts, errs := make([]*text, len(prompts)), make([]error, len(prompts))
	var all sync.WaitGroup
	began := time.Now()
	for i, ids := range prompts {
		all.Go(func() { texts[i], errs[i] = ask(ctx, ids, tokens) })
	}
	all.Wait()
	return texts, time.Since(began), errors.Join(errs...)
}
