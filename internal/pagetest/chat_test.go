package pagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server"
)

// serving returns a server of one scripted model.
func serving(t *testing.T, say scripted.Script, change ...func(*server.Options)) (*server.Server, *scripted.Model) {
	t.Helper()
	m := &scripted.Model{Context: 4096, Say: say}
	o := server.Options{Models: []server.Served{{Name: "scripted", Model: m}}}
	for _, f := range change {
		f(&o)
	}
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

// told says a text word by word, or what think is before it.
func told(think, text string, pause time.Duration) scripted.Script {
	return func(ctx context.Context, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			t := scripted.NewTeller(yield, &r)
			t.Prompt(58, 31)
			wait := func() bool {
				select {
				case <-ctx.Done():
					yield(moeflux.Event{}, context.Cause(ctx))
					return false
				case <-time.After(pause):
					return true
				}
			}
			for _, word := range strings.SplitAfter(think, " ") {
				if word != "" {
					if !wait() {
						return
					}
					t.Token(moeflux.Event{Reasoning: word, Raw: word})
				}
			}
			for _, word := range strings.SplitAfter(text, " ") {
				if !wait() {
					return
				}
				t.Say(word)
			}
			t.End(moeflux.StopEOS)
		}
	}
}

func TestPage(t *testing.T) {
	b := browser(t)
	for name, f := range map[string]func(*testing.T, context.Context){
		"chat": testChat, "leave": testLeave, "stop": testStop, "progress": testProgress,
		"retry": testRetry, "markdown": testMarkdown, "errors": testErrors, "broken": testBroken,
		"tools": testTools, "models": testModels, "long": testLong, "looks": testLooks,
		"live": testLive, "refused": testRefused,
	} {
		t.Run(name, func(t *testing.T) { f(t, b) })
	}
}

// A conversation is had by keyboard, and is still there after a reload.
func testChat(t *testing.T, b context.Context) {
	s, m := serving(t, nil)
	p := open(t, b, s)
	p.say("Hello **there**")
	if got := p.answer(); got != "Hello there" {
		t.Errorf("the answer is %q", got)
	}
	p.say("and more")
	if r := m.Last(); len(r.Messages) != 3 || r.Messages[1].Text() != "Hello **there**" || r.Messages[2].Text() != "and more" {
		t.Errorf("asked with %+v", r.Messages)
	}
	p.reload()
	p.until("document.querySelectorAll('.message').length === 4")
	if got := p.answer(); got != "and more" {
		t.Errorf("after a reload the answer is %q", got)
	}
	p.until("document.querySelectorAll('.entry').length === 1")
	// Another one beside it, and back; then it is deleted, and comes back.
	p.click("#new")
	p.say("second chat")
	p.until("document.querySelectorAll('.entry').length === 2")
	p.click(".entry:not(.shown) .title")
	p.until("document.querySelectorAll('.message').length === 4")
	p.until("document.querySelector('.entry.shown .title').innerText.startsWith('Hello')")
	js[any](p, "document.querySelector('.entry.shown .icon-button').click()")
	p.until("document.querySelectorAll('.entry').length === 1 && document.querySelectorAll('.message').length === 0")
	p.click(".toast button")
	p.until("document.querySelectorAll('.entry').length === 2")
}

// An answer or a deletion just before the page is left is not lost, even if the browser's database
// has not got round to it.
func testLeave(t *testing.T, b context.Context) {
	s, _ := serving(t, nil)
	p := open(t, b, s)
	// A transaction that never ends: all later ones wait for it and are dropped with the page.
	busy := func() {
		js[any](p, `new Promise((busy) => {
			indexedDB.open("moeflux").onsuccess = (e) => {
				const t = e.target.result.transaction("conversations", "readwrite").objectStore("conversations");
				const again = () => { t.get("nothing").onsuccess = again; busy(); };
				again();
			};
		})`)
	}
	busy()
	p.say("kept")
	p.reload()
	p.until("document.querySelectorAll('.message').length === 2")
	if got := p.answer(); got != "kept" {
		t.Errorf("after a reload the answer is %q", got)
	}
	p.until("document.querySelectorAll('.entry').length === 1")
	busy()
	js[any](p, "document.querySelector('.entry .icon-button').click()")
	p.reload()
	p.say("another")
	p.until("document.querySelectorAll('.entry').length === 1")
	p.until("document.querySelector('.entry .title').innerText === 'another'")
}

// Escape ends an answer; what it said stays, also over a reload, and the model is left alone.
func testStop(t *testing.T, b context.Context) {
	s, m := serving(t, told("", strings.Repeat("word ", 10_000), 5*time.Millisecond))
	p := open(t, b, s)
	p.begin("go on")
	p.until("document.querySelector('.message.assistant .text')?.innerText.length > 20")
	p.press("Escape", 27)
	p.done()
	for end := time.Now().Add(patience); m.Open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the model goes on")
		}
	}
	said := p.answer()
	p.until("document.querySelector('.figures').innerText.includes('stopped')")
	p.reload()
	p.until("document.querySelectorAll('.message').length === 2")
	if got := p.answer(); got != said || !strings.HasPrefix(got, "word word") {
		t.Errorf("after a reload it says %q, before %q", got, said)
	}
}

// While a long prompt is read the page says how far that is, and how long it still takes.
func testProgress(t *testing.T, b context.Context) {
	seen := make(chan struct{})
	s, _ := serving(t, func(ctx context.Context, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			for _, known := range []int{200, 1000} {
				yield(moeflux.Event{Reading: &moeflux.Reading{Known: known, Reused: 200, Total: 4000}}, nil)
				select {
				case <-time.After(100 * time.Millisecond): // at some speed
				case <-ctx.Done():
				}
			}
			<-seen
			scripted.Words("read")(ctx, r)(yield)
		}
	})
	p := open(t, b, s)
	p.begin("a long one")
	p.until("document.querySelector('.wait').innerText.match(/1,000 of 4,000 tokens · [0-9,]+ tokens.s · .* left/)")
	if got := js[float64](p, "document.querySelector('.wait progress').position"); got != 0.25 {
		t.Errorf("the bar is at %v", got)
	}
	p.picture("progress")
	close(seen)
	p.done()
	if got, left := p.answer(), js[string](p, "document.querySelector('.wait').innerText"); got != "read" || left != "" {
		t.Errorf("the answer is %q, and %q is left", got, left)
	}
}

// An answer is tried again, a message edited; each version stays, and can be gone back to.
func testRetry(t *testing.T, b context.Context) {
	var n atomic.Int32
	s, m := serving(t, func(ctx context.Context, r moeflux.Request) moeflux.Events {
		return scripted.Words(fmt.Sprintf("answer %d to %s", n.Add(1), r.Messages[len(r.Messages)-1].Text()))(ctx, r)
	})
	p := open(t, b, s)
	p.say("one")
	js[any](p, "document.querySelector('.message.assistant [aria-label=\"Try again\"]').click()")
	p.until("document.querySelector('.message.assistant .versions')?.innerText.includes('2 / 2')")
	p.done()
	if got := p.answer(); got != "answer 2 to one" {
		t.Errorf("the second answer is %q", got)
	}
	p.click(".message.assistant .versions button")
	p.until("document.querySelector('.message.assistant .text').innerText === 'answer 1 to one'")
	// The arrow edits the last message.
	p.do(chromedp.Focus(chromedp.CSS("#input")))
	p.press("ArrowUp", 38)
	p.until("document.activeElement.classList.contains('editor')")
	p.keys(" more")
	p.press("Enter", 13)
	p.until("document.querySelector('.message.assistant .text')?.innerText === 'answer 3 to one more'")
	p.done()
	if r := m.Last(); len(r.Messages) != 1 || r.Messages[0].Text() != "one more" {
		t.Errorf("asked with %+v", r.Messages)
	}
	p.until("document.querySelector('.message.user .versions').innerText.includes('2 / 2')")
	p.click(".message.user .versions button")
	p.until("document.querySelector('.message.assistant .text').innerText === 'answer 1 to one'")
}

// A tool is called: the call is shown, its result is given, and the answer goes on. Settings hold
// for the request.
func testTools(t *testing.T, b context.Context) {
	agent := new(scripted.Agent)
	s, m := serving(t, agent.Say)
	p := open(t, b, s)
	p.click("#open-settings")
	set := func(name, value string) {
		js[any](p, "{ const e = document.querySelector('#settings [name=%s]'); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); }", name, value)
	}
	set("tools", "[")
	p.click("#settings button[type=submit]")
	p.until("document.getElementById('settings').open && document.getElementById('tools-error').innerText.includes('not JSON')")
	set("tools", `[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]`)
	set("system", "You are brief.")
	set("temperature", "0.25")
	set("seed", "7")
	set("max_tokens", "500")
	set("stop", "END")
	set("thinking", "on")
	p.click("#settings button[type=submit]")
	p.until("!document.getElementById('settings').open")
	p.say("What is the weather in Paris?")
	p.until("document.querySelector('.call pre')?.innerText.includes('Paris')")
	if got := js[string](p, "document.querySelector('.reasoning .thought').textContent"); got != "They ask something." {
		t.Errorf("the reasoning is %q", got)
	}
	r := m.Last()
	if r.Messages[0].Text() != "You are brief." || *r.Sampling.Temperature != 0.25 || *r.Sampling.Seed != 7 || r.MaxTokens != 500 ||
		!slices.Equal(r.Stop, []string{"END"}) || r.TemplateArgs["enable_thinking"] != true || len(r.Tools) != 1 {
		t.Errorf("the settings came as %+v", r)
	}
	p.picture("tools")
	p.do(chromedp.Focus(chromedp.CSS(".results textarea")))
	p.keys("rainy, 8 degrees")
	p.click(".results button")
	p.until("document.querySelectorAll('.message.assistant').length === 2")
	p.done()
	if got := p.answer(); got != "The tool says: rainy, 8 degrees" {
		t.Errorf("after the result it says %q", got)
	}
	if r := m.Last(); len(r.Messages) != 4 || r.Messages[3].ToolCallID != r.Messages[2].ToolCalls[0].ID {
		t.Errorf("the result came as %+v", r.Messages)
	}
	// New chats begin with these settings.
	p.click("#new")
	p.say("hello")
	if r := m.Last(); r.Messages[0].Text() != "You are brief." {
		t.Errorf("a new chat was asked with %+v", r.Messages)
	}
}

// One of several models is chosen, and stays chosen.
func testModels(t *testing.T, b context.Context) {
	second := &scripted.Model{Context: 4096}
	s, first := serving(t, nil, func(o *server.Options) {
		o.Models = append(o.Models, server.Served{Name: "second", Model: second})
	})
	p := open(t, b, s)
	p.until("document.getElementById('model').options.length === 2")
	p.say("to the first")
	js[any](p, "{ const e = document.getElementById('model'); e.value = 'second'; e.dispatchEvent(new Event('change')); }")
	p.say("to the second")
	if first.Last().Messages[0].Text() != "to the first" || len(second.Last().Messages) != 3 {
		t.Error("the models were not asked as chosen")
	}
	p.reload()
	p.until("document.getElementById('model').value === 'second'")
}

// An answer of 10,000 tokens is drawn whole, and long lines make nothing scroll sideways.
func testLong(t *testing.T, b context.Context) {
	text := strings.Repeat("A paragraph of *some* words, and `code`, and more words.\n\n- one\n- two\n\n", 10_000/20) + strings.Repeat("x", 50_000)
	s, _ := serving(t, told("", text, 0))
	p := open(t, b, s)
	p.begin("go")
	p.done()
	if got := js[int](p, "[...document.querySelectorAll('.message.assistant .text > p')].length"); got != 501 {
		t.Errorf("%d paragraphs, want 501", got)
	}
	if wide := js[[]string](p, "%s", wide); len(wide) > 0 {
		t.Errorf("wider than the window: %q", wide)
	}
	// What is drawn already costs nothing: the end of a text takes no longer than its beginning.
	const growth = `(async () => {
		const { Markdown } = await import(new URL('page/markdown/render.js', location).href);
		const text = %s, root = document.createElement('div'), m = new Markdown(root), took = [];
		for (let n = 0; n < text.length; n += 100) { const began = performance.now(); m.update(text.slice(0, n), false); took.push(performance.now() - began); }
		const middle = (list) => list.sort((a, b) => a - b)[list.length >> 1], tenth = took.length / 10;
		return middle(took.slice(-tenth)) / Math.max(0.01, middle(took.slice(tenth, 2 * tenth)));
	})()`
	long, err := json.Marshal(strings.Repeat("A paragraph of *some* words, and `code`, and more words.\n\n- one\n- two\n\n", 3000))
	if err != nil {
		t.Fatal(err)
	}
	if got := js[float64](p, growth, long); got > 4 {
		t.Errorf("the end of a text takes %.1f times as long to draw as its beginning", got)
	}
}
