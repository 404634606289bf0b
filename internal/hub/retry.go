package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// transient is a failure that may not happen again.
type transient struct {
	err   error
	after time.Duration // how long the server asks to wait; 0 if it does not say
}

func (e *transient) Error() string { return e.err.Error() }
func (e *transient) Unwrap() error { return e.err }

// errStalled ends an attempt that brings nothing.
var errStalled = errors.New("nothing comes any more")

// The waits between attempts double from the first to the longest. A server may ask for more, but
// for no more than maxAfter.
const (
	firstWait   = time.Second
	longestWait = time.Minute
	maxAfter    = 10 * time.Minute

	firstAttempts = 5 // at most, before the hub has answered anything
)

// attempts returns how often in a row something may fail now.
func (c *Client) attempts() int {
	if c.answered.Load() {
		return c.config.Attempts
	}
	return min(c.config.Attempts, firstAttempts)
}

// again calls try until it succeeds, fails for good, or fails too often in a row without progress.
// try reports whether it brought something, calls alive while it does, and ends with its context.
func (c *Client) again(ctx context.Context, try func(ctx context.Context, alive func()) (progress bool, err error)) error {
	pause := firstWait
	for failed := 1; ; failed++ {
		progress, err := c.once(ctx, try)
		var t *transient
		switch {
		case ctx.Err() != nil && err != nil:
			return context.Cause(ctx)
		case !errors.As(err, &t):
			return err
		}
		if progress {
			failed, pause = 1, firstWait
		}
		if failed >= c.attempts() {
			return fmt.Errorf("gave up after %d attempts: %w", failed, t.err)
		}
		if t.after > maxAfter {
			return fmt.Errorf("%w: the server asks to come back in %s", t.err, t.after)
		}
		how := max(pause, t.after)
		if c.config.Waiting != nil {
			c.config.Waiting(t.err, how)
		}
		if err := c.config.Wait(ctx, how); err != nil {
			return err
		}
		pause = min(2*pause, longestWait)
	}
}

// once makes an attempt, and ends it when nothing comes for too long.
func (c *Client) once(ctx context.Context, try func(context.Context, func()) (bool, error)) (bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(c.config.Stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	progress, err := try(ctx, func() { stalled.Reset(c.config.Stall) })
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		err = &transient{err: errStalled}
	}
	return progress, err
}

// get asks for a file or an object. A status other than 200 and 206 is an error. The caller closes
// the body.
func (c *Client) get(ctx context.Context, what Asked, u *url.URL, byteRange string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if byteRange != "" {
		r.Header.Set("Range", byteRange)
	}
	resp, err := c.http.Do(r)
	if err == nil {
		c.answered.Store(true)
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errRedirect) || errors.As(err, &certificate):
		return nil, err
	case err != nil:
		return nil, &transient{err: err}
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent:
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refused(what, resp)
}

// refused returns the error that an answer is.
func (c *Client) refused(what Asked, resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // for the message alone
	e := &StatusError{URL: resp.Request.URL.Scheme + "://" + resp.Request.URL.Host + resp.Request.URL.EscapedPath(), Status: resp.StatusCode,
		Code: resp.Header.Get("X-Error-Code"), Message: message(resp.Header.Get("X-Error-Message"), text)}
	own := c.own(resp.Request.URL)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		if own {
			return &AccessError{Asked: what, Endpoint: c.config.Endpoint, HasToken: c.config.Token != "", Gated: e.Code == "GatedRepo", Err: e}
		}
		return &transient{err: e} // an address for a while, whose time is over
	case http.StatusNotFound:
		if own {
			return &NotFoundError{Asked: what, Endpoint: c.config.Endpoint, Err: e}
		}
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &transient{err: e, after: retryAfter(resp)}
	}
	return e
}

// retryAfter returns how long a server asks to wait: seconds, or until a date by its own clock.
func retryAfter(resp *http.Response) time.Duration {
	value := resp.Header.Get("Retry-After")
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	until, err := http.ParseTime(value)
	now, nowErr := http.ParseTime(resp.Header.Get("Date"))
	if err != nil || nowErr != nil {
		return 0
	}
	return max(0, until.Sub(now))
}
