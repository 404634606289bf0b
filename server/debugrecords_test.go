package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/remoterecords"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// recordsOf reads GET /debug/records.
func recordsOf(t *testing.T, url string, seconds float64) *record.Recording {
	t.Helper()
	rec, err := remoterecords.Read(t.Context(), remoterecords.From{URL: url, Seconds: seconds})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// What a server gives is what its engine has recorded.
func TestDebugRecords(t *testing.T) {
	m := demoModel(t)
	srv := watched(t, m)
	url := httptest.NewServer(srv)
	defer url.Close()
	const body = `{"prompt":"package main","max_tokens":4,"temperature":0}`
	post(t, url.URL+"/v1/completions", body)
	got := recordsOf(t, url.URL, 0)
	want, err := m.Engine().Recording(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Meta.Reason != "debug/records" || got.Meta.Model.Name != m.Info().Name || got.Meta.Written.IsZero() {
		t.Errorf("the meta is %+v", got.Meta)
	}
	got.Meta, want.Meta = record.Meta{}, record.Meta{}
	if len(want.Requests) == 0 || len(want.Uses) == 0 || !reflect.DeepEqual(got.Requests, want.Requests) || !reflect.DeepEqual(got.Uses, want.Uses) || !reflect.DeepEqual(got.Submissions, want.Submissions) {
		t.Errorf("there are %d requests and %d uses; the engine has %d and %d", len(got.Requests), len(got.Uses), len(want.Requests), len(want.Uses))
	}
	// With a time it is what happened in that time, and nothing of before.
	last := want.Requests[len(want.Requests)-1].Request
	later := make(chan *record.Recording, 1)
	go func() {
		rec, err := remoterecords.Read(t.Context(), remoterecords.From{URL: url.URL, Seconds: 1.5})
		if err != nil {
			t.Error(err)
		}
		later <- rec
	}()
	eventually(t, "somebody records", srv.views.Recording)
	status, busy := get(t, url.URL+"/debug/records")
	if status != http.StatusTooManyRequests || !strings.Contains(busy, "one at a time") {
		t.Errorf("a second reader: %d %s", status, busy)
	}
	var rec *record.Recording
	for over := false; !over; {
		select {
		case rec = <-later:
			over = true
		default:
			post(t, url.URL+"/v1/completions", body)
		}
	}
	if rec == nil {
		return
	}
	for _, r := range rec.Requests {
		if r.Request <= last {
			t.Errorf("request %d was before", r.Request)
		}
	}
	if len(rec.Requests) < 4 {
		t.Errorf("of 4 tokens and more there are %d requests", len(rec.Requests))
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	for buf := make([]byte, 4096); ; {
		n, err := resp.Body.Read(buf)
		if b.Write(buf[:n]); err != nil {
			return resp.StatusCode, b.String()
		}
	}
}

// Errors say what to do.
func TestDebugRecordsRefused(t *testing.T) {
	m := demoModel(t)
	open := httptest.NewServer(watched(t, m))
	defer open.Close()
	keyed := httptest.NewServer(watched(t, m, func(o *Options) { o.Keys = []access.Key{{Secret: "sk-admin-admin", Name: "root", Admin: true}} }))
	defer keyed.Close()
	none := httptest.NewServer(watched(t, m, func(o *Options) { o.Models[0].Engine = func() models.Engine { return nil } }))
	defer none.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, tc := range []struct {
		from remoterecords.From
		want string
	}{
		{remoterecords.From{URL: open.URL, Seconds: 1e6}, "at most 600"},
		{remoterecords.From{URL: open.URL, Model: "other"}, `no model "other"`},
		{remoterecords.From{URL: keyed.URL}, "MOEFLUX_API_KEY"},
		{remoterecords.From{URL: keyed.URL, Key: "sk-wrong-wrong"}, "not one of this server's"},
		{remoterecords.From{URL: none.URL}, "not in memory"},
		{remoterecords.From{URL: other.URL}, "is not a moeflux-actor server"},
		{remoterecords.From{URL: "127.0.0.1:8080"}, "not an address"},
		{remoterecords.From{URL: "http://127.0.0.1:1"}, "does not answer"},
	} {
		if _, err := remoterecords.Read(t.Context(), tc.from); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%+v: %v, want %q", tc.from, err, tc.want)
		}
	}
	if _, err := remoterecords.Read(t.Context(), remoterecords.From{URL: keyed.URL + "/", Key: "sk-admin-admin", Model: "demo"}); err != nil {
		t.Error(err)
	}
}

// A server that stops ends what would record for minutes: what came is there, and it is told that
// it is not all.
func TestDebugRecordsEndWithTheServer(t *testing.T) {
	srv := watched(t, demoModel(t))
	url := httptest.NewServer(srv)
	defer url.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := remoterecords.Read(t.Context(), remoterecords.From{URL: url.URL, Seconds: 300})
		ended <- err
	}()
	eventually(t, "somebody records", srv.views.Recording)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	srv.Drain(ctx)
	<-ended
	eventually(t, "nobody records any more", func() bool { return !srv.views.Recording() })
}
