// Package jinja renders the templates that models publish to turn a conversation into a prompt. It
// owns the template language: Jinja2 as the reference tools set it up for chat templates, which is
// trim_blocks and lstrip_blocks, no automatic escaping, the immutable sandbox, the loopcontrols
// extension, generation blocks, and a tojson that is Python's json.dumps without ASCII escaping.
//
// Parse makes a Template, which never changes and may be rendered by many goroutines at once.
// Values are Python's: None, bool, int of any size, float, str, list, tuple, dict that keeps its
// order; DecodeJSON reads them from JSON with the order of keys and the kind of numbers kept.
// ChatTemplate adds the variables that chat templates expect.
//
// What the language has and this package does not is refused by name, never skipped: include,
// import, extends, block, autoescape, % on strings, format specifications, and filters that no
// published chat template needs: those for web pages and those of numbers. A template can come from
// anywhere, so work, memory and depth are bounded by Config. Every error is an *Error with the kind
// that the reference would raise, the template's name and the line.
package jinja
