// Package constraint says which tokens may come next in a text that has to match a regular
// expression (Regexp), one of a list of texts (Choices), a grammar (GBNF) or a JSON schema
// (JSONSchema).
//
// A Grammar is compiled once from what the caller gives; a Vocabulary is made once from the bytes
// of a model's tokens. A State stands at a place of one text: Accepts checks a token, Mask gives
// all that may come next, Advance goes on. An end token is allowed where the text is complete,
// and no other control token ever is. Texts are valid UTF-8, whatever tokens they are made of.
//
// The automaton reads bytes. What follows from a place is worked out once and shared by all
// states of the grammar, and so are masks, within a bound of memory. A mask is made by walking a
// trie of the vocabulary; where any text of a set of characters may follow, as in free text, the
// tokens that are such a text come from a mask made before, and only the others are tried.
package constraint
