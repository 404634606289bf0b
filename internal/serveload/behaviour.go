package serveload

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// behaviour is a way to ask. It returns when what it asked for has come to an end. ctx is that of
// the whole run; going ends when clients are to stop asking.
type behaviour interface {
	ask(ctx, going context.Context, c *client) outcome
	String() string
}

// crowd is how the crowd behaves: each with so many of all requests.
var crowd = []struct {
	weight int
	behaviour
}{
	{40, patient{stream: true}}, {10, patient{}}, {15, leaver{}}, {10, slowReader{}}, {12, malformed{}}, {4, tooLong{}}, {1, tooLarge{}}, {3, stranger{}}, {5, halfOpen{}},
}

// crowdBehaviour chooses one by chance.
func crowdBehaviour(c *client) behaviour {
	all := 0
	for _, b := range crowd {
		all += b.weight
	}
	n := c.rng.IntN(all)
	for _, b := range crowd {
		if n -= b.weight; n < 0 {
			return b.behaviour
		}
	}
	panic("unreachable")
}

// patient reads the whole answer, as a stream or in one piece.
type patient struct{ stream bool }

func (p patient) String() string {
	if p.stream {
		return "streams"
	}
	return "waits"
}

func (p patient) ask(ctx, _ context.Context, c *client) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	q := c.question()
	if !p.stream {
		a, err := c.fetch(ctx, q)
		return judge(q, a, err)
	}
	s, err := c.fetchStream(ctx, q, func(*stream) bool { return true })
	o := judge(q, &s.answer, err)
	if o.kind == answered {
		o.first, o.silence = s.first, s.silence
	}
	return o
}

// slowReader takes a while for each event, and lets the answer wait in the server.
type slowReader struct{}

func (slowReader) String() string { return "reads slowly" }

func (slowReader) ask(ctx, _ context.Context, c *client) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	q, slow := c.question(), *c
	slow.http = c.narrow
	s, err := slow.fetchStream(ctx, q, func(*stream) bool {
		wait(ctx, time.Duration(c.rng.IntN(200))*time.Millisecond)
		return true
	})
	return judge(q, &s.answer, err)
}

// leaver leaves after some time or some events, whichever comes first.
type leaver struct{}

func (leaver) String() string { return "leaves" }

func (leaver) ask(ctx, _ context.Context, c *client) outcome {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.rng.IntN(3000))*time.Millisecond)
	defer cancel()
	q, events := c.question(), 1+c.rng.IntN(20)
	s, err := c.fetchStream(ctx, q, func(*stream) bool { events--; return events > 0 })
	switch {
	case s.fault != "" || s.whole:
		return judge(q, &s.answer, nil)
	case ctx.Err() == nil && err != nil:
		return judge(q, nil, err)
	}
	if err := q.check(s.text.String(), false); err != nil {
		return outcome{kind: wrong, detail: err.Error()}
	}
	return outcome{kind: left}
}

// stranger has no key of this server.
type stranger struct{}

func (stranger) String() string { return "has a wrong key" }

func (stranger) ask(ctx, _ context.Context, c *client) outcome {
	q := c.question()
	return c.refused(ctx, q.api.path, "sk-nobody", bytes.NewReader(q.request(false)), 401)
}

// malformed sends what is no request.
type malformed struct{}

func (malformed) String() string { return "sends nonsense" }

var nonsense = []string{
	"", "{", "[]", "null", "\xff\xfe{}", `{"messages":5,"prompt":5,"input":5}`, `{"messages":[{"role":"wizard","content":"x"}],"prompt":{},"input":{}}`,
	`{"prompt":"x","input":"x","messages":[{"role":"user","content":"x"}],"max_tokens":-1,"max_output_tokens":-1}`,
	strings.Repeat("[", 20_000), `{"messages":` + strings.Repeat(`{"a":`, 5_000),
}

func (malformed) ask(ctx, _ context.Context, c *client) outcome {
	return c.refused(ctx, c.question().api.path, c.secret, strings.NewReader(nonsense[c.rng.IntN(len(nonsense))]), 400)
}

// tooLong sends a prompt that no context has room for.
type tooLong struct{}

func (tooLong) String() string { return "asks too much" }

func (tooLong) ask(ctx, _ context.Context, c *client) outcome {
	q := *c.question()
	q.prompt = strings.Repeat(q.prompt+" more ", 200_000/len(q.prompt))
	if c.rng.IntN(2) == 0 {
		return c.refused(ctx, q.api.path, c.secret, bytes.NewReader(q.request(false)), 400)
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	s, err := c.fetchStream(ctx, &q, func(*stream) bool { return true })
	o := judge(&q, &s.answer, err)
	// A server that takes long to count the tokens has sent its headers by then, and the refusal is
	// an event.
	if o.kind == failed && strings.Contains(o.detail, "context") {
		return outcome{kind: refused}
	}
	return o
}

// tooLarge sends a body that is larger than the server takes.
type tooLarge struct{}

func (tooLarge) String() string { return "sends too much" }

func (tooLarge) ask(ctx, _ context.Context, c *client) outcome {
	spaces := io.LimitReader(blank{}, 32<<20+1<<10)
	return c.refused(ctx, c.question().api.path, c.secret, io.MultiReader(strings.NewReader(`{"prompt":"`), spaces), 413)
}

// blank is spaces without end.
type blank struct{}

func (blank) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// refused sends what must be refused with a status and an error.
func (c *client) refused(ctx context.Context, path, secret string, body io.Reader, status int) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	resp, err := c.send(ctx, path, secret, body)
	if err != nil {
		return outcome{kind: lost, detail: err.Error()}
	}
	defer resp.Body.Close()
	a, err := refusal(resp)
	switch {
	case err != nil:
		return outcome{kind: lost, detail: err.Error()}
	case resp.StatusCode == 429 || resp.StatusCode == 503:
		return outcome{kind: busy}
	case resp.StatusCode != status:
		return outcome{kind: failed, detail: fmt.Sprintf("want the status %d: %s", status, a.fault)}
	}
	return outcome{kind: refused}
}

// halfOpen connects, says nothing or half of what it has to say, and waits for the server to hang
// up.
type halfOpen struct{}

func (halfOpen) String() string { return "says half" }

func (halfOpen) ask(ctx, going context.Context, c *client) outcome {
	u, err := url.Parse(c.url)
	if err != nil {
		return outcome{kind: failed, detail: err.Error()}
	}
	conn, err := narrow(ctx, "tcp", u.Host)
	if err != nil {
		return outcome{kind: lost, detail: err.Error()}
	}
	defer conn.Close()
	stop := context.AfterFunc(going, func() { conn.Close() })
	defer stop()
	head := "POST /v1/completions HTTP/1.1\r\nHost: " + u.Host + "\r\nAuthorization: Bearer " + c.secret + "\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
	said := []string{"", head, head + "\r\n{\"prompt\":"}[c.rng.IntN(3)]
	_, err = io.WriteString(conn, said)
	_ = conn.SetReadDeadline(time.Now().Add(c.half)) // of a socket that is open; otherwise the read fails
	if err == nil {
		_, err = io.Copy(io.Discard, conn)
	}
	switch {
	case going.Err() != nil:
		return outcome{kind: left}
	case isTimeout(err):
		return outcome{kind: held, detail: fmt.Sprintf("after %d bytes of a request the server waits for longer than %v", len(said), c.half)}
	}
	return outcome{kind: closed}
}

func isTimeout(err error) bool {
	t, ok := err.(net.Error)
	return ok && t.Timeout()
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
