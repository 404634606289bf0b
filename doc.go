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
// ids, logits, states, statistics. With Options.System it lives in the protoactor-go system of the
// service. Actors there may call this package's functions, in a goroutine of their own, or send the
// messages of package stages to the engine's PID, as requests. Model.Tokenizer makes token ids of
// text, and text of ids.
//
//	pid := model.Engine().PID()
//	future := system.Root.RequestFuture(pid, &stages.EvalChunk{Seq: mine, Tokens: ids}, time.Minute)
//
// A sequence begins with &stages.OpenSequence{Seq: mine} and ends with &stages.CloseSequence{Seq:
// mine}, both answered by a *stages.SequenceDone. The sender chooses the number, a stages.SeqID:
// take 1<<40 or more, since the engine's methods count up from 1. It is the sender who closes the
// sequence, also when its actor stops: nobody else does. EvalChunk is answered by a
// *stages.ChunkEvaluated, with Logits of the last token, and Err. The text ends where the sender
// says so, as at one of Engine().Model().EOSTokenIDs. A message that the engine does not know is
// answered by a *runtime.MessageError, of package actors/runtime.
//
// # Surroundings
//
// What is not given comes from around the program: the folder of cached files (Options.CacheDir),
// the clock (Options.Now), a random seed (Sampling.Seed), and for the choice of the device, as of
// the command, the variables MOEFLUX_CPU, MOEFLUX_CUDA_DRIVER, MOEFLUX_CUDA_NVRTC, CUDA_HOME and
// CUDA_PATH. Nothing else here reads the environment.
package moeflux
