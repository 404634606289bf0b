package prefix_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/prefix"
)

// BenchmarkLongest looks for the text that holds the longest beginning of another, among 1,000 of
// 4,000 tokens with a common beginning of 2,000: by comparing each, and by the tree. The text goes
// on from one of them, or only shares what all share: then the tree looks at all holders there, of
// which the caller prefers one.
func BenchmarkLongest(b *testing.B) {
	const texts, tokens, shared = 1000, 4000, 2000
	var tree prefix.Tree[int]
	var list [][]int32
	for i := range texts {
		text := make([]int32, tokens)
		for at := range text {
			text[at] = int32(at)
			if at >= shared {
				text[at] = int32(at*7 + i)
			}
		}
		list = append(list, text)
		tree.Insert(text, i)
	}
	asked := slices.Concat(list[700][:3900], []int32{-1, -2, -3})
	branch := slices.Concat(list[0][:shared], []int32{-1, -2, -3})
	for _, c := range []struct {
		name     string
		text     []int32
		who, has int
	}{{"one", asked, 700, 3900}, {"all", branch, 0, shared}} {
		b.Run(fmt.Sprintf("has=%s/by=scan", c.name), func(b *testing.B) {
			for b.Loop() {
				best, most := -1, 0
				for i, text := range list {
					if n := prefix.Common(text, c.text); n > most {
						best, most = i, n
					}
				}
				if best != c.who || most != c.has {
					b.Fatalf("text %d has %d, want %d and %d", best, most, c.who, c.has)
				}
			}
		})
		b.Run(fmt.Sprintf("has=%s/by=tree", c.name), func(b *testing.B) {
			for b.Loop() {
				best, most := -1, 0
				for h, n := range tree.Sharing(c.text) {
					if n < most {
						break
					}
					if most == 0 || h.Value < best {
						best, most = h.Value, n
					}
				}
				if best != c.who || most != c.has {
					b.Fatalf("text %d has %d, want %d and %d", best, most, c.who, c.has)
				}
			}
		})
	}
}

// BenchmarkExtend has a text grow by a token, beside 1,000 others that begin as it does.
func BenchmarkExtend(b *testing.B) {
	var tree prefix.Tree[int]
	text := make([]int32, 1<<16)
	for i := range 1000 {
		tree.Insert(append(slices.Clone(text[:1000]), int32(i+1)), i)
	}
	h := tree.Insert(text[:1000], -1)
	n := 1000
	b.ReportAllocs()
	for b.Loop() {
		if n++; n > len(text) {
			n = 1001
			tree.Cut(h, 1000)
		}
		tree.Extend(h, text[:n])
	}
}
