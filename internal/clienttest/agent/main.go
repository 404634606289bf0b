// Command agent serves the scripted agent on loopback, to try clients by hand without a model that
// knows tools: go run ./agent [ADDRESS].
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server"
)

func main() {
	address := "127.0.0.1:8080"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, address string) error {
	s, err := server.New(server.Options{
		Models: []server.Served{{Name: "agent", Model: (&scripted.Agent{Pause: time.Millisecond}).Model()}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	return s.Listen(ctx, server.Listening{Addr: address, Told: func(url string) { fmt.Println("listening on", url) }})
}
