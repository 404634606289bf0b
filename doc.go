// Package moeflux runs Mixture-of-Experts language models whose experts stay on disk. It is what a
// program imports that wants text: prompts and conversations in, events out.
//
// Open opens a model, Demo the one that is built in. Model.Generate continues a text, Model.Chat
// answers a conversation; both take a Request and yield an Event for each token as it comes:
//
//	for event, err := range model.Chat(ctx, moeflux.Request{Messages: messages}) {
//		if err != nil {
//			return err
//		}
//		fmt.Print(event.Text)
//	}
//
// Who wants less writes model.Chat(ctx, request).Copy(w), or .Wait() for the whole answer at once.
// A Session keeps a text or a conversation from request to request and, under a name, from process
// to process.
//
// A Model serves any number of requests at once, from any number of goroutines. Their tokens travel
// together, so that experts which several of them need are read and computed once; nobody's bits
// depend on who else is there. Where memory is short, requests wait for each other by class and key
// (Request.Class, Request.Key). A request ends within 100 ms when its context does.
//
// # Below
//
// This package chooses the device, reads tokenizer, template and sampling defaults of the model,
// and finds out what in an answer is text, reasoning or a call of a tool. The engine underneath is
// Model.Engine, of package actors: token ids, logits, states, statistics. Its Engine.PID takes the
// messages of package stages from other actors.
package moeflux
