// Package fleet keeps several models under one budget of memory: it loads each when a request wants
// it, shares the memory for experts out among those that are loaded, and unloads those that nobody
// has used for a while or whose memory others want.
//
// The nouns:
//
//   - need: the memory that a model takes while it is loaded. Some is fixed, and that for expert
//     slots may be anything between a least and a most.
//   - user: a request that runs on a model. A model with users is never unloaded.
//   - turn: how long a model that is in use may go on to take requests while another one waits for
//     its memory.
//   - share: the bytes of expert slots that a model has.
//
// Core decides. It has no clock and does nothing by itself: its methods take the time and what has
// happened, and return commands. Fleet carries the commands out. Model is one of its models as
// package server sees it.
//
// Within its share each engine still decides by itself: it gives slots up while the memory of the
// machine is short, and what the states of texts take beyond their part of the budget comes from
// there.
package fleet
