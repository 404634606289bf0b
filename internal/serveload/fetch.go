package serveload

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// receiveBuffer is what the system keeps of an answer that is not read: little, so that a slow
// reader is noticed by the server.
const receiveBuffer = 4 << 10

func narrow(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetReadBuffer(receiveBuffer)
	}
	return conn, err
}

// send sends a body and returns the answer, which the caller closes.
func (c *client) send(ctx context.Context, path, secret string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+secret)
	return c.http.Do(req)
}

// fetch asks a question and returns the answer in one piece. The error says that there was neither
// an answer nor an error of the server.
func (c *client) fetch(ctx context.Context, q *question) (*answer, error) {
	resp, err := c.send(ctx, q.api.path, c.secret, bytes.NewReader(q.request(false)))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	var m message
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		return nil, fmt.Errorf("%s: the answer is not JSON: %w", q.api.name, err)
	}
	a := &answer{whole: true, tokens: m.Usage.served()}
	a.text.WriteString(q.api.whole(&m))
	return a, nil
}

// refusal returns the error that a response has in place of an answer.
func refusal(resp *http.Response) (*answer, error) {
	var m message
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&m); err != nil || len(m.Error) == 0 {
		return nil, fmt.Errorf("status %d without an error in JSON (%v)", resp.StatusCode, err)
	}
	return &answer{fault: fmt.Sprintf("%d %s", resp.StatusCode, m.Error)}, nil
}

// stream is a streamed answer that is being read.
type stream struct {
	answer
	api     *api
	heard   time.Time     // from the server last
	silence time.Duration // the longest time between two signs of life
	asked   time.Time
	first   time.Duration // until the first piece of text; 0: none came
}

// fetchStream asks a question and reads the stream of its answer. After each event it calls each,
// which may take its time, and which ends the reading by returning false. The error says that there
// was neither a whole answer nor an error of the server.
func (c *client) fetchStream(ctx context.Context, q *question, each func(*stream) bool) (*stream, error) {
	s := &stream{api: q.api, asked: time.Now()}
	s.heard = s.asked
	resp, err := c.send(ctx, q.api.path, c.secret, bytes.NewReader(q.request(true)))
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	s.alive()
	if resp.StatusCode != http.StatusOK {
		a, err := refusal(resp)
		if a != nil {
			s.fault = a.fault
		}
		return s, err
	}
	in := bufio.NewReaderSize(resp.Body, 16<<10)
	for {
		line, err := in.ReadBytes('\n')
		s.alive()
		data, event := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: "))
		if event {
			if err := s.take(data); err != nil {
				return s, err
			}
		}
		switch {
		case err == io.EOF && (s.whole || s.fault != ""):
			return s, nil
		case err == io.EOF:
			return s, fmt.Errorf("%s: the stream ended early and cleanly, after %d bytes of text", q.api.name, s.text.Len())
		case err != nil:
			return s, err
		case event && !each(s):
			return s, nil
		}
		s.heard = time.Now() // what each takes is the client's time
	}
}

func (s *stream) alive() {
	now := time.Now()
	s.silence, s.heard = max(s.silence, now.Sub(s.heard)), now
}

// take takes the data of an event.
func (s *stream) take(data []byte) error {
	if string(data) == "[DONE]" {
		s.whole = true
		return nil
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%s: an event is not JSON: %w", s.api.name, err)
	}
	for _, e := range []json.RawMessage{m.Error, errorOf(m.Response)} {
		if len(e) > 0 && string(e) != "null" {
			s.fault = string(e)
		}
	}
	for _, u := range []*message{&m, m.Response, m.Message} {
		if u != nil && u.Usage != nil {
			s.tokens = u.Usage.served()
		}
	}
	if s.api.event(&m, &s.answer) {
		s.whole = true
	}
	if s.first == 0 && s.text.Len() > 0 {
		s.first = time.Since(s.asked)
	}
	return nil
}

func errorOf(m *message) json.RawMessage {
	if m == nil {
		return nil
	}
	return m.Error
}
