// Command hostbench measures what expert hosts cost an engine: it starts hosts and an engine as
// processes of this machine, puts a network of a given delay and rate between them
// (internal/netdelay), and prints where a decoded token's time went beside the arithmetic: a round
// trip and the bytes of each layer, and what the hosts computed.
//
//	go build -o bin/moeflux-actor ./cmd/moeflux-actor
//	bin/moeflux-actor synth --shape qwen3-30b-a3b --layers 8 --vocab 8192 --experts 64 /var/tmp/m8
//	go run ./internal/hostbench -program bin/moeflux-actor -model /var/tmp/m8
//
//	main.go    options, and a line of the table for each network
//	process.go hosts and the engine
//	path.go    what a recording says of its tokens
//
// An engine of so little memory that it asks for nearly everything does all of this for each token,
// so a line is what a layer costs at worst. Hosts, engine and network share the machine's cores.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moeflux/moeflux-actor/internal/netdelay"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
)

type options struct {
	program, model string
	hosts, threads int
	tokens         int
	sum            bool            // hosts answer with sums
	row            rowBytes        // of the model
	delays         []time.Duration // one way
	rates          []int64         // bits a second
	dir            string          // for files
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hostbench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*options, error) {
	o := new(options)
	set := flag.NewFlagSet("hostbench", flag.ContinueOnError)
	set.StringVar(&o.program, "program", "bin/moeflux-actor", "the program")
	set.StringVar(&o.model, "model", "", "a packed model")
	set.IntVar(&o.hosts, "hosts", 3, "how many hosts")
	set.IntVar(&o.threads, "threads", 1, "of each process")
	set.IntVar(&o.tokens, "tokens", 64, "to decode for each line")
	set.BoolVar(&o.sum, "sum", false, "hosts answer with sums, as with --hosts-sum")
	delays := set.String("delays", "25us,50us,100us,200us", "of the network, one way, with commas between them")
	rates := set.String("rates", "0,10,1", "of the network, in Gbit/s, with commas between them; 0 is no limit")
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(*delays, ",") {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		o.delays = append(o.delays, d)
	}
	for text := range strings.SplitSeq(*rates, ",") {
		r, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		o.rates = append(o.rates, int64(r*1e9))
	}
	if o.model == "" || o.hosts < 1 {
		return nil, fmt.Errorf("name a model with -model, and at least one host with -hosts")
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "hostbench"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if o.row, err = rowOf(o.model); err != nil {
		return err
	}
	o.row.sum = o.sum
	hosts, err := startHosts(ctx, o)
	defer func() { stop(hosts) }()
	if err != nil {
		return err
	}
	if err := line(ctx, o, io.Discard, hosts, nil); err != nil { // hosts map their experts first
		return err
	}
	fmt.Fprintln(out, "| network | round trip | token | a layer: network | host waits | host reads | host computes | by arithmetic | overhead | token by arithmetic | off |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	if err := line(ctx, o, out, hosts, nil); err != nil {
		return err
	}
	for _, rate := range o.rates {
		for _, delay := range o.delays {
			if err := line(ctx, o, out, hosts, &netdelay.Link{Delay: delay, Rate: rate}); err != nil {
				return err
			}
		}
	}
	return nil
}

// line measures one network, nil being none but the machine's own.
func line(ctx context.Context, o *options, out io.Writer, hosts []*host, link *netdelay.Link) error {
	name := "none"
	if link != nil {
		name = fmt.Sprintf("%v, %s", link.Delay, rateName(link.Rate))
	}
	trip, err := roundTrip(link)
	if err != nil {
		return err
	}
	var addrs []string
	for _, h := range hosts {
		addr, end, err := behind(h.addr, link)
		if err != nil {
			return err
		}
		defer end()
		addrs = append(addrs, addr)
	}
	file := filepath.Join(o.dir, "records")
	if err := decode(ctx, o, addrs, file); err != nil {
		return err
	}
	p, err := pathOf(file, o.row)
	if err != nil {
		return err
	}
	arithmetic := trip
	if link != nil && link.Rate > 0 {
		arithmetic += time.Duration(p.bytes * 8 * int64(time.Second) / link.Rate)
	}
	layers := time.Duration(p.layers)
	overhead := p.network + p.wait + p.read - arithmetic
	predicted := p.here + layers*(arithmetic+p.compute)
	_, err = fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %+.0f %% |\n", name, us(trip), us(p.token), us(p.network), us(p.wait), us(p.read), us(p.compute),
		us(arithmetic), us(overhead), us(predicted), 100*(float64(p.token)/float64(predicted)-1))
	return err
}

// behind puts a network before an address.
func behind(addr string, link *netdelay.Link) (string, func(), error) {
	if link == nil {
		return addr, func() {}, nil
	}
	p, err := netdelay.New(addr, *link)
	if err != nil {
		return "", nil, err
	}
	return p.Addr(), func() { _ = p.Close() }, nil
}

// roundTrip measures how long a small message takes over a network and back, without its rate.
func roundTrip(link *netdelay.Link) (time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go netdelay.Echo(l)
	if link != nil {
		link = &netdelay.Link{Delay: link.Delay}
	}
	addr, end, err := behind(l.Addr().String(), link)
	if err != nil {
		return 0, err
	}
	defer end()
	const bytes, rounds = 64, 1000
	return netdelay.RoundTrip(addr, bytes, rounds)
}

// rowOf returns the size of a model's rows. Both sides compute with int8, which is the default: if
// inputs of the experts are rounded in groups, a row goes out as a byte for each number and four
// for each group.
func rowOf(dir string) (row rowBytes, err error) {
	f, err := modelfiles.Open(modelfiles.Where{Path: dir})
	if err != nil {
		return row, err
	}
	defer f.Close()
	l, hidden := f.Experts.Layout(), f.Config.HiddenSize
	row = rowBytes{there: int64(4 * hidden), back: int64(4 * hidden)}
	if group := l.Gate.Format.Rounded(); group > 0 && group == l.Up.Format.Rounded() {
		row.there = int64(hidden + 4*hidden/group)
	}
	return row, nil
}

func rateName(bits int64) string {
	if bits == 0 {
		return "no limit"
	}
	return fmt.Sprintf("%g Gbit/s", float64(bits)/1e9)
}

func us(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }
