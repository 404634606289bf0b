package pagetest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// patience is how long a test waits for what must come: the machine may be busy.
const patience = 60 * time.Second

// browsers are the programs that can drive the page, in order of preference.
var browsers = []string{"chromium-headless-shell", "headless_shell", "chromium", "chromium-browser", "google-chrome"}

// browser starts a browser for the tests of a test, with nothing kept from others.
func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(testenv.Find(t, "chromium-headless-shell fonts-inter fonts-jetbrains-mono", browsers...)),
		chromedp.NoSandbox, // the tests of CI run as root
		chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("lang", "en"), chromedp.WindowSize(1280, 800),
	)
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(t.Logf))
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts it
		t.Fatal(err)
	}
	return ctx
}

// tab is the page in a browser.
type tab struct {
	*testing.T
	ctx context.Context
	web *httptest.Server

	mu      sync.Mutex
	wrong   []string // what no page may do
	allowed []string // parts of what this one is expected to say
}

// open serves s, opens its page and waits until it can be used. At the end of the test nothing may
// have gone wrong in it: no error, no message in the console, no request to elsewhere, nothing that
// its policy had to refuse.
func open(t *testing.T, browser context.Context, s http.Handler) *tab {
	t.Helper()
	p := openAt(t, browser, s)
	p.ready()
	return p
}

// openAt is open without the waiting.
func openAt(t *testing.T, browser context.Context, s http.Handler) *tab {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{T: t, ctx: ctx, web: web}
	p.watch()
	p.do(chromedp.Navigate(web.URL))
	t.Cleanup(p.verdict)
	return p
}

// ready waits until the page can be used: at the end it puts the focus where one writes.
func (p *tab) ready() {
	p.Helper()
	p.until("document.activeElement?.id === 'input'")
}

// reload loads the page anew.
func (p *tab) reload() {
	p.Helper()
	p.do(chromedp.Reload())
	p.ready()
}

// watch notes what goes wrong.
func (p *tab) watch() {
	p.Helper()
	// Subscribed before anything is loaded.
	messages := chromedp.Console(p.ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.note("console: " + string(m.Type) + ": " + m.Text)
		}
	}()
	host, err := url.Parse(p.web.URL)
	if err != nil {
		p.Fatal(err)
	}
	requests := chromedp.Events(p.ctx, network.RequestWillBeSent)
	go func() {
		for r, err := range requests {
			if err != nil {
				return
			}
			if to, err := url.Parse(r.Request.URL); err != nil || to.Host != host.Host {
				p.note("fetched " + r.Request.URL)
			}
		}
	}()
	if _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); err != nil {
		p.Fatal(err)
	}
}

func (p *tab) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, what)
}

// expect allows messages of the console that have this part: those that a test provokes.
func (p *tab) expect(part string) { p.allowed = append(p.allowed, part) }

func (p *tab) verdict() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wrong {
		if !slices.ContainsFunc(p.allowed, func(part string) bool { return strings.Contains(w, part) }) {
			p.Error(w)
		}
	}
	if p.Failed() {
		ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
		defer cancel()
		if dir := os.Getenv(picturesIn); dir != "" {
			if png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
				_ = os.WriteFile(filepath.Join(dir, "failed-"+strings.ReplaceAll(p.Name(), "/", "-")+".png"), png, 0o644)
			}
		}
	}
}

// do runs actions in the page.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// filled returns a format with its arguments; without any it is taken as it is.
func filled(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

// js returns the value of an expression in the page, awaited.
func js[T any](p *tab, expression string, args ...any) T {
	p.Helper()
	expression = filled(expression, args)
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true.
func (p *tab) until(expression string, args ...any) {
	p.Helper()
	condition := filled(expression, args)
	for end := time.Now().Add(patience); !js[bool](p, "Boolean(%s)", condition); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("this did not come true: %s\nthe page has:\n%s", condition, js[string](p, "document.body.innerText"))
		}
	}
}

// click clicks what a selector finds.
func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// keys types text into the element that has the focus.
func (p *tab) keys(text string) {
	p.Helper()
	p.do(chromedp.KeyEvent(text))
}

// press presses a key that is no character. Its code is that of Windows.
func (p *tab) press(key string, code int64) {
	p.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: kind, Key: key, Code: key, WindowsVirtualKeyCode: code,
		}); err != nil {
			p.Fatal(err)
		}
	}
}

// say sends a message and waits until the answer is complete.
func (p *tab) say(text string) {
	p.Helper()
	p.begin(text)
	p.done()
}

// begin sends a message.
func (p *tab) begin(text string) {
	p.Helper()
	before := js[int](p, "document.querySelectorAll('.message.assistant').length")
	p.do(chromedp.Focus(chromedp.CSS("#input")))
	p.keys(text)
	p.press("Enter", 13)
	p.until("document.querySelectorAll('.message.assistant').length > %d", before)
}

// done waits until no answer is under way.
func (p *tab) done() {
	p.Helper()
	p.until("document.getElementById('send').title.startsWith('Send') && !document.querySelector('[aria-busy]')")
}

// answer returns the text of the last answer.
func (p *tab) answer() string {
	p.Helper()
	return js[string](p, "[...document.querySelectorAll('.message.assistant .text:not(.thought)')].at(-1)?.innerText ?? ''")
}

// look sets the size of the window and the theme of the system.
func (p *tab) look(width, height int64, scheme string) {
	p.Helper()
	phone := width < 600
	scale := 1.0
	if phone {
		scale = 2
	}
	p.do(chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)))
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		p.Fatal(err)
	}
	p.until("document.getAnimations().every((a) => a.playState !== 'running' || a.effect.getTiming().iterations === Infinity)")
}

// picturesIn names the folder that pictures are written to; without it none are made. Some of them
// are in docs/pictures.
const picturesIn = "MOEFLUX_PICTURES"

// picture keeps what the page looks like.
func (p *tab) picture(name string) {
	p.Helper()
	dir := os.Getenv(picturesIn)
	if dir == "" {
		return
	}
	for _, format := range []page.CaptureScreenshotFormat{page.CaptureScreenshotFormatPng, page.CaptureScreenshotFormatWebp} {
		shot := page.CaptureScreenshotParams{Format: format}
		if format == page.CaptureScreenshotFormatWebp {
			shot.Quality = new(int64(82))
		}
		r, err := chromedp.Call(p.ctx, page.CaptureScreenshot, shot)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+"."+string(format)), r.Data, 0o644)
		}
		if err != nil {
			p.Fatal(err)
		}
	}
}

// until waits for something on the server's side.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this did not come true: %s", what)
		}
	}
}
