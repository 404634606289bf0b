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
// # The engine, and its actors
//
// This package chooses the device, reads tokenizer, template and sampling defaults of the model,
// and tells text from reasoning. The engine underneath is Model.Engine, of package actors: token
// ids, logits, states, statistics.
//
// With Options.System it lives in the protoactor-go system of the service; DemoDir with Open is
// Demo there. Actors may call this package's functions in a goroutine of their own. Or they send
// pointers to the messages of package stages to the engine's PID, as requests:
//
//	pid := model.Engine().PID()
//	ask := func(m any) *actor.Future { return system.Root.RequestFuture(pid, m, time.Minute) }
//	ask(&stages.OpenSequence{Seq: mine})           // a *stages.SequenceDone comes
//	ask(&stages.EvalChunk{Seq: mine, Tokens: ids}) // a *stages.ChunkEvaluated
//	ask(&stages.CloseSequence{Seq: mine})          // a *stages.SequenceDone
//
// The sender chooses the number, a stages.SeqID: take 1<<40 or more, since the engine's methods
// count up from 1. Every answer has an Err. Tokens, of which Model.Tokenizer knows the ids,
// continue the sequence; a prompt may be sent whole. A ChunkEvaluated has Logits, by token id, for
// the token that follows. The text ends where the sender says so, as at one of
// Engine().Model().EOSTokenIDs. It is the sender who closes the sequence, also after an error, and
// when its actor stops; closing the model ends those that are left. A message that the engine does
// not know is answered by a *runtime.MessageError, of package actors/runtime, and one to a closed
// model by the system, as a dead letter.
//
// # Surroundings
//
// What is not given comes from around the program: the folder of cached files (Options.CacheDir),
// the clock (Options.Now), a random seed (Sampling.Seed), and for the choice of the device, as of
// the command, the variables MOEFLUX_CPU, MOEFLUX_CUDA_DRIVER, MOEFLUX_CUDA_NVRTC, CUDA_HOME and
// CUDA_PATH. Nothing else here reads the environment.
package moeflux
