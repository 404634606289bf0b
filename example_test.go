package moeflux_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/stages"
)

// The likeliest tokens give the same text each time; without a Temperature tokens are drawn as the
// model's makers say.
var likeliest = moeflux.Sampling{Temperature: new(0.0)}

// A text as it comes. The model is the built-in one; yours is the directory that "moeflux-actor
// convert" wrote, for Open.
func Example() {
	ctx := context.Background()
	model, err := moeflux.Demo(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close(ctx)
	request := moeflux.Request{Prompt: "if err != nil {\n", MaxTokens: 5, Sampling: likeliest}
	if _, err := model.Generate(ctx, request).Copy(os.Stdout); err != nil {
		log.Fatal(err)
	}
	// Output: return nil, err
}

// A conversation, event by event.
func ExampleModel_Chat() {
	ctx := context.Background()
	model, err := moeflux.Demo(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close(ctx)
	request := moeflux.Request{
		Messages: []moeflux.Message{
			{Role: moeflux.System, Content: "Be brief."},
			{Role: moeflux.User, Content: "hello"},
		},
		MaxTokens: 8,
		Sampling:  likeliest,
	}
	tokens := 0
	for event, err := range model.Chat(ctx, request) {
		switch {
		case err != nil:
			log.Fatal(err)
		case event.Token != nil: // event.Reasoning and event.Text are what it brought
			tokens++
		case event.End != nil:
			fmt.Println(tokens == event.End.Usage.NewTokens, event.End.Message.Role)
		}
	}
	// Output: true assistant
}

// The model may call functions of the program, which asks it again as long as it does. (The
// built-in model knows no tools.)
func ExampleModel_Chat_tools() {
	ctx := context.Background()
	model, err := moeflux.Open(ctx, "MODEL", moeflux.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close(ctx)
	schema := `{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}`
	weather, err := moeflux.NewTool("weather", "What the weather is in a city.", json.RawMessage(schema))
	if err != nil {
		log.Fatal(err)
	}
	messages := []moeflux.Message{{Role: moeflux.User, Content: "Is it cold in Oslo?"}}
	for {
		end, err := model.Chat(ctx, moeflux.Request{Messages: messages, Tools: []*moeflux.Tool{weather}}).Copy(os.Stdout)
		if err != nil {
			log.Fatal(err)
		}
		messages = append(messages, end.Message)
		if len(end.Message.ToolCalls) == 0 {
			return
		}
		for _, call := range end.Message.ToolCalls {
			result := "-5 °C" // of call.Name
			messages = append(messages, moeflux.Message{Role: moeflux.ToolResult, ToolCallID: call.ID, Content: result})
		}
	}
}

// A service streams an answer, and stops when the client goes: the request's context ends.
func Example_http() {
	model, err := moeflux.Demo(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close(context.Background())
	gone := make(chan error)
	handler := func(w http.ResponseWriter, r *http.Request) {
		prompt, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request := moeflux.Request{Prompt: string(prompt), Sampling: likeliest, Key: r.Header.Get("X-Api-Key")}
		for event, err := range model.Generate(r.Context(), request) {
			if full, ok := errors.AsType[*moeflux.QueueFullError](err); ok {
				w.Header().Set("Retry-After", fmt.Sprint(1+int(full.RetryAfter.Seconds())))
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			if err != nil {
				gone <- err
				return
			}
			if event.Text != "" {
				fmt.Fprintln(w, event.Text)
				http.NewResponseController(w).Flush()
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(handler))
	defer server.Close()

	ctx, leave := context.WithCancel(context.Background())
	post, err := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader("package main\n\nfunc main() {\n"))
	if err != nil {
		log.Fatal(err)
	}
	answer, err := server.Client().Do(post)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	bufio.NewScanner(answer.Body).Scan() // the first words have come
	leave()
	fmt.Println(errors.Is(<-gone, context.Canceled))
	// Output: true
}

// Twenty conversations at once share the model. Where memory is short they wait for each other, and
// all of them finish.
func Example_concurrent() {
	ctx := context.Background()
	dir, err := moeflux.DemoDir(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	// Eight may have memory at once; it is shared out among keys by tokens.
	model, err := moeflux.Open(ctx, dir, moeflux.Options{Config: moeflux.Config{MaxSequences: 8}})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close(ctx)
	var all sync.WaitGroup
	ends := make([]*moeflux.End, 20)
	for i := range ends {
		all.Go(func() {
			request := moeflux.Request{
				Messages:  []moeflux.Message{{Role: moeflux.User, Content: fmt.Sprintf("What is %d + %d?", i, i)}},
				MaxTokens: 12,
				Class:     moeflux.Interactive,
				Key:       fmt.Sprintf("tenant %d", i%4),
				Sampling:  likeliest,
			}
			end, err := model.Chat(ctx, request).Wait()
			if err != nil {
				log.Print(err)
				return
			}
			ends[i] = end
		})
	}
	all.Wait()
	answered := 0
	for _, end := range ends {
		if end != nil && end.Usage.Account.Requests > 0 {
			answered++
		}
	}
	fmt.Println(answered, "answered")
	// Output: 20 answered
}

// continueText asks the actor of Example_actors, which answers with a string or an error.
type continueText struct{ prompt string }

// The engine lives in the actor system that a service has already. An actor of the service asks it
// for text, and its own messages go to the engine's PID.
func Example_actors() {
	ctx := context.Background()
	quiet := func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }
	system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
	defer system.Shutdown()
	dir, err := moeflux.DemoDir(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	model, err := moeflux.Open(ctx, dir, moeflux.Options{System: system})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close(ctx)

	writer := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		ask, ok := c.Message().(continueText)
		if !ok {
			return
		}
		sender := c.Sender()
		go func() { // an actor does not wait
			end, err := model.Generate(ctx, moeflux.Request{Prompt: ask.prompt, MaxTokens: 5, Sampling: likeliest}).Wait()
			if err != nil {
				system.Root.Send(sender, err)
				return
			}
			system.Root.Send(sender, end.Message.Content)
		}()
	}))
	text, err := system.Root.RequestFuture(writer, continueText{"if err != nil {\n"}, time.Minute).Result()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", text)

	// What package stages says of its messages holds here: "Caller to sequencer".
	ask := func(m any) any {
		answer, err := system.Root.RequestFuture(model.Engine().PID(), m, time.Minute).Result()
		if err != nil {
			log.Fatal(err)
		}
		return answer
	}
	ids, err := model.Tokenizer().Encode("if err != nil {\n", true)
	if err != nil {
		log.Fatal(err)
	}
	const mine = 1 << 40 // small numbers are those of the engine's methods
	ask(&stages.OpenSequence{Seq: mine})
	read := ask(&stages.EvalChunk{Seq: mine, Tokens: ids}).(*stages.ChunkEvaluated)
	fmt.Println(read.Err, len(read.Logits) == model.Engine().Model().VocabSize)
	ask(&stages.CloseSequence{Seq: mine})
	if err := system.Root.StopFuture(writer).Wait(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// "\t\treturn nil, err"
	// <nil> true
}

// Spans of steps, layers and stages go to the program's own OpenTelemetry provider, under the span
// of the request.
func Example_tracing() {
	ctx := context.Background()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	dir, err := moeflux.DemoDir(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	model, err := moeflux.Open(ctx, dir, moeflux.Options{Config: moeflux.Config{Tracer: provider}})
	if err != nil {
		log.Fatal(err)
	}
	traced, span := provider.Tracer("my service").Start(ctx, "request")
	_, err = model.Generate(traced, moeflux.Request{Prompt: "package main", MaxTokens: 2}).Wait()
	span.End()
	// The last spans leave the engine when it is closed.
	if err := errors.Join(err, model.Close(ctx), provider.ForceFlush(ctx)); err != nil {
		log.Fatal(err)
	}
	mine := 0
	for _, s := range exporter.GetSpans() {
		if s.SpanContext.TraceID() == span.SpanContext().TraceID() {
			mine++
		}
	}
	fmt.Println(mine > 10, mine == len(exporter.GetSpans()))
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: true true
}

// A conversation goes on in the next request, and in the next process: neither sends again what was
// said, nor reads it.
func Example_sessions() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "sessions")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	sessions, err := moeflux.OpenSessions(ctx, folder, 1<<30) // 1 GiB for all of them
	if err != nil {
		log.Fatal(err)
	}
	model, err := moeflux.Demo(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close(ctx)
	for _, said := range []string{"hello", "and then?"} {
		talk, err := sessions.Open("alice")
		if err != nil {
			log.Fatal(err)
		}
		end, err := model.Chat(ctx, moeflux.Request{
			Session: talk, Messages: []moeflux.Message{{Role: moeflux.User, Content: said}}, MaxTokens: 8, Sampling: likeliest,
		}).Wait()
		if err == nil {
			err = talk.Save(ctx)
		}
		if err := errors.Join(err, talk.Close()); err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(talk.Messages()), "messages, reused:", end.Usage.ReusedTokens > 0)
	}
	// Output:
	// 2 messages, reused: false
	// 4 messages, reused: true
}

// script is a model for tests: it says the same whatever it is asked.
type script []string

func (s script) Generate(ctx context.Context, r moeflux.Request) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		for _, text := range s {
			if ctx.Err() != nil {
				yield(moeflux.Event{}, context.Cause(ctx))
				return
			}
			if !yield(moeflux.Event{Text: text, Raw: text}, nil) {
				return
			}
		}
		answer := moeflux.Message{Role: moeflux.Assistant, Content: strings.Join(s, "")}
		yield(moeflux.Event{End: &moeflux.End{Reason: moeflux.StopEOS, Message: answer}}, nil)
	}
}

func (s script) Chat(ctx context.Context, r moeflux.Request) moeflux.Events {
	return s.Generate(ctx, r)
}

// A service is tested without a model: what it needs of one is a Generator.
func ExampleGenerator() {
	greet := func(model moeflux.Generator) (*moeflux.End, error) {
		hello := []moeflux.Message{{Role: moeflux.User, Content: "hello"}}
		return model.Chat(context.Background(), moeflux.Request{Messages: hello}).Copy(os.Stdout)
	}
	end, err := greet(script{"Good ", "morning.\n"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Reason)
	// Output:
	// Good morning.
	// eos
}
