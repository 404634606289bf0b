package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultEndpoint is Hugging Face.
const DefaultEndpoint = "https://huggingface.co"

// Config says which hub, and how to reach it. The zero value is Hugging Face without a token.
type Config struct {
	// Endpoint is the address of the hub, as in HF_ENDPOINT. "" means DefaultEndpoint.
	Endpoint string
	// Token is who asks, as in HF_TOKEN. "" means nobody in particular.
	Token string
	// UserAgent is what the requests are from.
	UserAgent string
	// Transport makes the connections. nil means NewTransport without a proxy.
	Transport http.RoundTripper
	// Stall is how long a connection may bring nothing before another is tried; 0 means a minute.
	Stall time.Duration
	// Attempts is how often in a row something may fail without bringing a byte; 0 means 10, which
	// is some four minutes. Before the hub has answered anything it is at most 5, some 15 seconds:
	// the address may be wrong, or there is no network.
	Attempts int
	// Wait waits between attempts. nil means that time passes.
	Wait func(context.Context, time.Duration) error
	// Waiting, if not nil, is told why and how long a request waits.
	Waiting func(why error, how time.Duration)
}

// Client asks a hub. It may be used by several goroutines.
type Client struct {
	config   Config
	endpoint *url.URL
	http     *http.Client
	answered atomic.Bool // the hub, or where it redirects to
}

// NewTransport returns the connections that suit a hub: with a limit on how long it may not answer,
// and with contents as they are. proxy is as in http.Transport.
func NewTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   30 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   8,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // sizes and ranges are of what the file holds
	}
}

// New checks the configuration.
func New(c Config) (*Client, error) {
	if c.Endpoint == "" {
		c.Endpoint = DefaultEndpoint
	}
	u, err := url.Parse(strings.TrimRight(c.Endpoint, "/"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, &EndpointError{Endpoint: c.Endpoint, Why: "is not an address such as " + DefaultEndpoint}
	}
	if c.Token != "" && u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, &EndpointError{Endpoint: c.Endpoint, Why: "would carry the token where others can read it: use https, or no token"}
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token has characters that no token has: is there a line feed in it?")
	}
	if c.Stall == 0 {
		c.Stall = time.Minute
	}
	if c.Attempts == 0 {
		c.Attempts = 10
	}
	if c.Wait == nil {
		c.Wait = wait
	}
	if c.Transport == nil {
		c.Transport = NewTransport(nil)
	}
	client := &Client{config: c, endpoint: u}
	client.http = &http.Client{Transport: &signer{client: client, base: c.Transport}, CheckRedirect: checkRedirect}
	return client, nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// wait is Config.Wait where time passes.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Close gives up idle connections.
func (c *Client) Close() {
	if t, ok := c.config.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// signer adds the token to requests to the hub itself. Requests carry none of their own, so a
// redirect has none to take along.
type signer struct {
	client *Client
	base   http.RoundTripper
}

func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", s.client.config.UserAgent)
	if s.client.config.Token != "" && s.client.own(r.URL) {
		r.Header.Set("Authorization", "Bearer "+s.client.config.Token)
	}
	return s.base.RoundTrip(r)
}

// own reports whether an address is of the hub itself.
func (c *Client) own(u *url.URL) bool {
	return u.Scheme == c.endpoint.Scheme && strings.EqualFold(u.Host, c.endpoint.Host)
}

// errRedirect refuses to follow a redirect.
var errRedirect = errors.New("redirected from https to http, or more than ten times")

func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) > 10 || r.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
		return errRedirect
	}
	return nil
}

// url returns an address at the hub. Slashes of path divide it; those of last do not.
func (c *Client) url(path, last string) *url.URL {
	u := *c.endpoint
	u.Path += "/" + path + last
	u.RawPath = c.endpoint.EscapedPath() + "/" + strings.ReplaceAll(url.PathEscape(path), "%2F", "/") + url.PathEscape(last)
	return &u
}

// maxJSON bounds an answer that is read whole.
const maxJSON = 64 << 20

// json asks for an object, and returns the headers of the answer, too.
func (c *Client) json(ctx context.Context, what Asked, u *url.URL, into any) (http.Header, error) {
	var header http.Header
	err := c.again(ctx, func(ctx context.Context, alive func()) (bool, error) {
		resp, err := c.get(ctx, what, u, "")
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		header = resp.Header
		raw, err := io.ReadAll(&watched{Reader: io.LimitReader(resp.Body, maxJSON+1), alive: alive})
		switch {
		case err != nil:
			return false, &transient{err: err}
		case len(raw) > maxJSON:
			return false, fmt.Errorf("%s answers with more than %d MiB", u.Redacted(), maxJSON>>20)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return false, fmt.Errorf("%s does not answer as a hub does (%w): is HF_ENDPOINT right?", u.Redacted(), err)
		}
		return false, nil
	})
	return header, err
}

// watched says that something came.
type watched struct {
	io.Reader
	alive func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.alive()
	return n, err
}
