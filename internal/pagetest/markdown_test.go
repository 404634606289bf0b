package pagetest

import (
	"context"
	"encoding/json"
	"testing"
)

// rendered returns what markdown becomes, as HTML, drawn at once and in pieces of some characters.
const rendered = `(async () => {
	const { Markdown } = await import(new URL('page/markdown/render.js', location).href);
	const text = %s, step = %d;
	const root = document.createElement('div');
	const m = new Markdown(root);
	for (let n = step; n < text.length; n += step) m.update(text.slice(0, n), false);
	m.update(text, true);
	for (const e of root.querySelectorAll('figcaption')) e.remove();
	return root.innerHTML.replaceAll(' target="_blank" rel="noopener noreferrer nofollow"', '');
})()`

var markdownCases = []struct{ name, text, want string }{
	{"paragraphs", "one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"},
	{"emphasis", "*a* **b** ***c*** _d_ __e__ ~~f~~", "<p><em>a</em> <strong>b</strong> <strong><em>c</em></strong> <em>d</em> <strong>e</strong> <del>f</del></p>"},
	{"nested", "**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"},
	{"no emphasis", "2 * 3 * 4 snake_case_name a*", "<p>2 * 3 * 4 snake_case_name a*</p>"},
	{"code", "`a*b*` and ``x`y``", "<p><code>a*b*</code> and <code>x`y</code></p>"},
	{"escapes", `\*a\* \<b\> 1\. c`, "<p>*a* &lt;b&gt; 1. c</p>"},
	{"headings", "# a\n### b ###\n####### c", "<h2>a</h2><h4>b</h4><p>####### c</p>"},
	{"rule", "a\n\n---\nb", "<p>a</p><hr><p>b</p>"},
	{"breaks", "a  \nb<br>c\\\nd", "<p>a  <br>b<br>c<br>d</p>"},
	{"fence", "```go\nif a < b {\n}\n```\nend", `<figure class="code"><pre tabindex="0"><code><span class="c-word">if</span> a &lt; b {` + "\n" + `}</code></pre></figure><p>end</p>`},
	{"open fence", "```\n<b>", `<figure class="code"><pre tabindex="0"><code>&lt;b&gt;</code></pre></figure>`},
	{"fence in item", "- a\n  ```\n  x\n  ```\n- b", `<ul class="tight"><li><p>a</p><figure class="code"><pre tabindex="0"><code>x</code></pre></figure></li><li><p>b</p></li></ul>`},
	{"list", "- a\n- b\n  - c\n- d", `<ul class="tight"><li><p>a</p></li><li><p>b</p><ul class="tight"><li><p>c</p></li></ul></li><li><p>d</p></li></ul>`},
	{"ordered", "3. a\n4. b\n\n   more", `<ol class="tight" start="3"><li><p>a</p></li><li><p>b</p><p>more</p></li></ol>`},
	{"loose", "* a\n\n* b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"},
	{"bullets under a number", "1. a\n  - b\n2. c", `<ol class="tight"><li><p>a</p><ul class="tight"><li><p>b</p></li></ul></li><li><p>c</p></li></ol>`},
	{"tasks", "- [x] a\n- [ ] b", `<ul class="tight"><li class="task"><span class="box ticked" role="img" aria-label="done"></span><p>a</p></li><li class="task"><span class="box" role="img" aria-label="not done"></span><p>b</p></li></ul>`},
	{"quote", "> a\n> - b\nc", `<blockquote><p>a</p><ul class="tight"><li><p>b` + "\nc</p></li></ul></blockquote>"},
	{"table", "a | b\n--|-:\n`x|y` | 2\n\nz", `<div class="table-box" tabindex="0" role="region" aria-label="Table"><table><thead><tr><th class="align-left">a</th><th class="align-right">b</th></tr></thead><tbody><tr><td class="align-left"><code>x|y</code></td><td class="align-right">2</td></tr></tbody></table></div><p>z</p>`},
	{"links", "[a *b*](https://x.example/ \"t\") <https://y.example/> https://z.example/q?a=(b).", `<p><a href="https://x.example/">a <em>b</em></a> <a href="https://y.example/">https://y.example/</a> <a href="https://z.example/q?a=(b)">https://z.example/q?a=(b)</a>.</p>`},

	// What must not do anything.
	{"script", "<script>alert(1)</script><img src=x onerror=alert(1)>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;</p>"},
	{"javascript link", "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](/debug/records) [e](vbscript:x)", "<p><span>a</span> <span>b</span> <span>c</span> <span>d</span> <span>e</span></p>"},
	{"image", "![a](https://evil.example/x.png) ![](data:image/png;base64,AA==)", `<p><a href="https://evil.example/x.png" class="image">image: a</a> <span class="image">image: untitled</span></p>`},
	{"language of code", "```\"><script>\nx\n```", `<figure class="code"><pre tabindex="0"><code>x</code></pre></figure>`},
}

// Markdown becomes what it says, whether it comes at once or letter by letter, and nothing in it
// becomes markup.
func testMarkdown(t *testing.T, b context.Context) {
	s, _ := serving(t, nil)
	p := open(t, b, s)
	for _, tc := range markdownCases {
		text, err := json.Marshal(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []int{1 << 20, 1, 3} {
			if got := js[string](p, rendered, text, step); got != tc.want {
				t.Errorf("%s, %d at a time:\n got %s\nwant %s", tc.name, step, got, tc.want)
			}
		}
	}
}
