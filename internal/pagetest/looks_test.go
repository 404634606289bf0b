package pagetest

import (
	"context"
	"testing"
	"time"
)

const (
	question = "Why do mixture-of-experts models read so little for each token?"
	thinking = "The user asks about sparsity. A router picks a few experts in each layer, so most weights rest. I should give the numbers and a small sketch in Go."
	answer   = "A layer has many experts, and its **router** picks a few of them for each token. Everything else stays where it is, on disk or in memory.\n\n" +
		"| model | experts | picked | read for a token |\n| --- | ---: | ---: | ---: |\n| 30B-A3B | 128 | 8 | 6 % |\n| 122B-A10B | 256 | 8 | 3 % |\n\n" +
		"Which ones is known only when the layer has *routed* the token, so the engine reads ahead what it expects:\n\n" +
		"```go\n// route picks the k experts with the highest scores.\n" +
		"func route(scores []float32, k int) []int {\n\tpicked := make([]int, 0, k)\n\tfor range k {\n" +
		"\t\tpicked = append(picked, argmax(scores, picked))\n\t}\n\treturn picked\n}\n```"
)

// What people see, in both themes and at the width of a phone: texts have a contrast of 4.5 to 1,
// and nothing is wider than the window.
func testLooks(t *testing.T, b context.Context) {
	s, _ := serving(t, told(thinking, answer, 2*time.Millisecond))
	p := open(t, b, s)
	p.view(1200, 940, "light", "empty-light")
	p.say(question)
	p.view(1200, 940, "light", "chat")
	p.view(1200, 940, "dark", "chat-dark")
	p.click(".account summary")
	p.click(".reasoning summary")
	p.view(1200, 1200, "dark", "chat-open")
	p.view(390, 844, "light", "phone-light")
	p.view(390, 844, "dark", "phone-dark")
	p.click("#menu")
	p.view(390, 844, "light", "phone-menu")
	p.press("Escape", 27)
	p.until("!document.body.classList.contains('menu-open')")
	p.click("#open-settings")
	p.view(390, 844, "dark", "phone-settings")
	p.view(1200, 940, "dark", "settings-dark")
	p.view(1200, 940, "light", "settings-light")
	p.press("Escape", 27)
	// The switch goes against the system, and is remembered.
	p.click("#theme")
	p.reload()
	if got := js[string](p, "document.documentElement.dataset.theme"); got != "dark" {
		t.Errorf("after the switch and a reload the theme is %q", got)
	}
}

// view looks at the page in a size and a theme.
func (p *tab) view(width, height int64, scheme, name string) {
	p.Helper()
	p.look(width, height, scheme)
	p.picture(name)
	if pale := js[[]string](p, "%s", pale); len(pale) > 0 {
		p.Errorf("%s: too little contrast: %q", name, pale)
	}
	if wide := js[[]string](p, "%s", wide); len(wide) > 0 {
		p.Errorf("%s: wider than the window: %q", name, wide)
	}
}

// pale is the texts that are seen and differ too little from what is below them.
const pale = `(() => {
	const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
	const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const below = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
	const out = [], texts = document.createTreeWalker(document.querySelector('dialog[open]') ?? document.body, NodeFilter.SHOW_TEXT);
	const judge = (e, color, what) => {
		const a = light(rgb(color)), b = light(below(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) out.push(what.trim().slice(0, 40) + ': ' + ratio.toFixed(2));
	};
	for (let n; (n = texts.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest('.hidden-text, :disabled')) continue;
		judge(e, getComputedStyle(e).color, n.data);
	}
	for (const e of document.querySelectorAll('input, textarea')) if (e.checkVisibility() && !e.closest('.hidden-text')) judge(e, getComputedStyle(e, '::placeholder').color, e.placeholder);
	return out;
})()`

// wide is the elements that make the page scroll sideways.
const wide = `[document.documentElement, ...document.querySelectorAll('#thread, #sidebar, dialog[open]')].filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.id || e.tagName)`
