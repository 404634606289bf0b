// Package pages keeps the books of states: who holds which page of keys and values, which frozen
// states are kept, and what all of it takes of two budgets. It is bookkeeping only, by plain
// methods: it sends no message, moves no bytes, and compares no tokens. Package sequencer is its
// one user.
//
// Its nouns:
//
//   - Book: all the books of an engine.
//   - Text: what a sequence holds, that is pages, tokens and a length. Its recurrent state lies in
//     dispatch, and is counted here (AddStates).
//   - State: a frozen state. It is kept (a checkpoint of a sequence, or remembered for any text
//     that begins alike), or a caller has it, to read it or to fill it.
//   - holder: who has a page. Live holders are texts and the states that callers have; kept ones
//     are the states that are kept.
//   - victim: a kept state that may be given up for lack of memory.
//   - Need: what somebody wants of the budget of all states.
//
// What the books give up is dispatch's to free: see Book.Gone.
package pages
