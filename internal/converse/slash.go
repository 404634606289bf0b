package converse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// slashHelp is what /help prints.
const slashHelp = `/clear         begin a new conversation; the system message stays
/retry         answer the last message again
/system        show the system message; /system TEXT sets it, /system - takes it away
/save FILE     write the conversation as JSON messages
/load FILE     go on with a saved conversation
/stats         figures of the last answer
/quit          leave, as Ctrl-D does
End a line with \ to go on in the next one, or put the text between """ and """. // at the beginning is a slash.
Ctrl-C stops an answer; once more, at once. The arrow keys bring back what was typed.`

// command does what was typed after a slash.
func (d *Dialogue) command(ctx context.Context, line string) (done bool, err error) {
	name, arg, _ := strings.Cut(line, " ")
	arg = strings.TrimSpace(arg)
	if arg != "" && name != "system" && name != "save" && name != "load" {
		d.note("/%s takes nothing; /help lists the commands", name)
		return false, nil
	}
	switch name {
	case "help":
		d.note("%s", slashHelp)
	case "quit", "exit":
		return true, nil
	case "clear":
		d.Messages = nil
		return false, d.Session.Reset(ctx)
	case "retry":
		if err := d.retry(ctx); err != nil {
			return false, err
		}
		return d.results(ctx)
	case "system":
		d.setSystem(arg)
	case "save":
		d.report(d.save(arg))
	case "load":
		d.report(d.load(arg))
	case "stats":
		d.stats()
	default:
		d.note("there is no /%s; /help lists the commands, // at the beginning is a slash", name)
	}
	return false, nil
}

// report tells the person what went wrong with a command.
func (d *Dialogue) report(err error) {
	if err != nil {
		d.note("error: %s", d.Explain(err))
	}
}

// retry answers the last message of the person again. If that fails the old answer stays.
func (d *Dialogue) retry(ctx context.Context) error {
	old := d.Messages
	for len(d.Messages) > 0 && d.Messages[len(d.Messages)-1].Role != moeflux.User {
		d.Messages = d.Messages[:len(d.Messages)-1]
	}
	if len(d.Messages) == 0 {
		d.Messages = old
		d.note("there is no message to answer again")
		return nil
	}
	asked := len(d.Messages)
	d.Messages = d.Messages[:asked:asked] // an answer shall not write over the old one
	if err := d.respond(ctx, 1); err != nil {
		return err
	}
	if len(d.Messages) < asked {
		d.Messages = old
		d.note("(the old answer stays)")
	}
	return nil
}

func (d *Dialogue) setSystem(text string) {
	switch text {
	case "":
		if d.System == "" {
			d.note("there is no system message; /system TEXT sets one")
		} else {
			d.note("%s", d.System)
		}
	case "-":
		d.System = ""
	default:
		d.System = text
	}
}

// save writes the conversation. It replaces no file but the one that it wrote or read itself.
func (d *Dialogue) save(file string) error {
	if file == "" {
		return errors.New("give the name of the file: /save FILE")
	}
	messages := d.All()
	if messages == nil {
		messages = []moeflux.Message{} // prints as a list
	}
	write := durable.Create
	if file == d.saved {
		write = durable.Replace
	}
	err := write(file, durable.Shared, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(messages)
	})
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; choose another name", file)
	}
	if err != nil {
		return err
	}
	d.saved = file
	d.note("%d messages in %s", len(messages), file)
	return nil
}

// load goes on with a saved conversation in place of this one.
func (d *Dialogue) load(file string) error {
	if file == "" {
		return errors.New("give the name of the file: /load FILE")
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	messages, err := chat.ReadMessages(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	count := len(messages)
	system := ""
	if count > 0 && messages[0].Role == moeflux.System {
		system, messages = messages[0].Content, messages[1:]
	}
	d.System, d.Messages, d.saved = system, messages, file
	d.note("%d messages of %s", count, file)
	return nil
}

func (d *Dialogue) stats() {
	if d.last == "" {
		d.note("there was no answer yet")
		return
	}
	d.note("%s", d.last)
	d.note("the conversation holds %d messages and %d of %d positions", len(d.All()), d.Session.Positions(), d.Context)
}
