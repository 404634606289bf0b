// Package remoterecords reads the records of a running server (GET /debug/records).
package remoterecords

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// From says which records are wanted.
type From struct {
	URL     string  // of the server: http://HOST:PORT, or a path below which it answers
	Model   string  // one of those that it serves; "" means the first in memory
	Key     string  // of an admin; "" sends none
	Seconds float64 // the records of that time from now on; 0 means those that there are
}

// Variable is the variable of the environment that users put the key in. The command line of a
// program can be read by others.
const Variable = "MOEFLUX_API_KEY"

// The bounds of an answer.
const (
	headTime  = 15 * time.Second
	mostBytes = 4 << 30
)

// Validate says what is wrong with the address.
func (f *From) Validate() error {
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%q is not an address like http://HOST:PORT", f.URL)
	}
	if f.Seconds < 0 {
		return errors.New("the time must be above 0 seconds")
	}
	return nil
}

// Read returns the records. Errors say what to do.
func Read(ctx context.Context, f From) (*record.Recording, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	req, err := f.request(ctx)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = headTime
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("%s does not answer: %w", f.URL, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s gives no records: %s", f.URL, refusal(resp, f.Key != ""))
	}
	rec, err := record.ReadRecording(io.LimitReader(resp.Body, mostBytes))
	if cause := context.Cause(ctx); err == nil && rec.Cut && cause != nil {
		err = cause
	}
	if err != nil {
		return nil, fmt.Errorf("the records of %s cannot be read: %w", f.URL, err)
	}
	return rec, nil
}

func (f *From) request(ctx context.Context) (*http.Request, error) {
	u, err := url.Parse(f.URL)
	if err != nil {
		return nil, err
	}
	u = u.JoinPath("debug/records")
	q := url.Values{}
	if f.Model != "" {
		q.Set("model", f.Model)
	}
	if f.Seconds > 0 {
		q.Set("seconds", strconv.FormatFloat(f.Seconds, 'g', -1, 64))
	}
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if f.Key != "" {
		req.Header.Set("Authorization", "Bearer "+f.Key)
	}
	return req, nil
}

// refusal says why a server gives no records, and what to do.
func refusal(resp *http.Response, keyed bool) string {
	var said struct {
		Error struct{ Message string }
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if json.Unmarshal(body, &said) != nil || said.Error.Message == "" {
		return fmt.Sprintf("it answers %s, and is not a moeflux-actor server", resp.Status)
	}
	why := strings.TrimSpace(said.Error.Message)
	if resp.StatusCode == http.StatusUnauthorized && !keyed {
		why += "; put an admin's key into " + Variable
	}
	return why
}
