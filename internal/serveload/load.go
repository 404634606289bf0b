package serveload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Load says what a server is loaded with. URL and one of Duration and Answers must be set.
type Load struct {
	URL string
	// Clients is how many there are in all. Those of Fair are among them; the others are the crowd,
	// which behaves in all ways and shares one key.
	Clients int
	// Fair is how many clients each of some keys has. They ask without a pause, and each key is to
	// be served as much as any other.
	Fair []int
	// Duration is how long clients go on asking; 0 means until there are Answers.
	Duration time.Duration
	// Answers is after how many whole answers clients stop asking; 0 means after Duration.
	Answers int
	// Patience is how long a client waits for the end of an answer before it counts as lost; 0
	// means 3 minutes.
	Patience time.Duration
	// Calm is how long the server may take to be as it was before, once nobody asks; 0 means 45 s.
	Calm time.Duration
	// Questions is how many different ones are asked; 0 means all there are.
	Questions int
	Seed      uint64 // of what clients choose
	Limits    Limits
}

// The keys that the server must know: Fair keys are secretOf their number.
const (
	crowdSecret = "sk-load-crowd"
	adminSecret = "sk-load-admin"
)

func secretOf(key int) string { return fmt.Sprintf("sk-load-fair-%d", key) }

// Keys returns the file of keys for a server that is to be loaded, as its --api-key-file takes it.
func (l *Load) Keys() string {
	var b strings.Builder
	for i := range l.Fair {
		fmt.Fprintf(&b, "%s name=fair-%d\n", secretOf(i), i)
	}
	fmt.Fprintf(&b, "%s name=crowd\n%s name=admin class=interactive admin=yes\n", crowdSecret, adminSecret)
	return b.String()
}

// retryTime is how long a client waits when the server has told it to come again.
const retryTime = time.Second

// client is one of those that ask. It is used by one goroutine.
type client struct {
	url       string
	secret    string
	http      *http.Client
	narrow    *http.Client // over connections that hold little of an answer that is not read
	rng       *rand.Rand
	questions []question
	patience  time.Duration
	half      time.Duration // for which a server may wait for the rest of a request
}

// halfTime is client.half: the server's own times are below it.
const halfTime = 60 * time.Second

func (l *Load) client(secret string, n uint64, questions []question) *client {
	return &client{
		url: l.URL, secret: secret, http: over(new(net.Dialer).DialContext), narrow: over(narrow), rng: rand.New(rand.NewPCG(l.Seed, n)), questions: questions,
		patience: cmp.Or(l.Patience, 3*time.Minute), half: halfTime,
	}
}

// over returns a client of HTTP over connections that dial makes.
func over(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 1, DisableCompression: true}}
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	c.narrow.CloseIdleConnections()
}

// question returns one by chance.
func (c *client) question() *question { return &c.questions[c.rng.IntN(len(c.questions))] }

// Run asks every question alone, then loads the server, and waits until all clients have their
// answers and the server is as it was before. The error says why there is no report; what the
// server did wrong is in the report.
func Run(ctx context.Context, l Load) (*Report, error) {
	others := l.Clients
	for _, n := range l.Fair {
		others -= n
	}
	if others < 0 || (l.Duration == 0) == (l.Answers == 0) {
		return nil, errors.New("there must be as many clients as those of the keys, and either a duration or a number of answers")
	}
	questions := someQuestions(l.Questions)
	alone := l.client(adminSecret, 0, questions)
	defer alone.close()
	for i := range questions {
		if err := alone.learn(ctx, &questions[i]); err != nil {
			return nil, fmt.Errorf("the answer before the load: %w", err)
		}
	}
	w, err := watch(ctx, alone)
	if err != nil {
		return nil, err
	}
	r := newReport(&l)
	r.Questions = len(questions)
	l.ask(ctx, r, questions, others)
	w.settle(ctx, cmp.Or(l.Calm, 45*time.Second))
	r.vitals = w.stop()
	r.judge()
	return r, ctx.Err()
}

// ask has all clients ask until it is time to stop, and waits for their last answers.
func (l *Load) ask(ctx context.Context, r *Report, questions []question, others int) {
	going, stop := context.WithCancel(ctx)
	defer stop()
	if l.Duration > 0 {
		defer time.AfterFunc(l.Duration, stop).Stop()
	}
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	var started uint64
	var whole atomic.Int64
	var all sync.WaitGroup
	start := func(key int, secret string, choose func(*client) behaviour) {
		started++
		c := l.client(secret, started, questions)
		all.Go(func() {
			defer c.close()
			for going.Err() == nil {
				b := choose(c)
				o := b.ask(ctx, going, c)
				r.add(key, b, o, going.Err() == nil)
				if o.kind == answered && whole.Add(1) == int64(l.Answers) {
					stop()
				}
				if o.kind == busy {
					wait(going, retryTime)
				}
			}
		})
	}
	for key, n := range l.Fair {
		for range n {
			start(key, secretOf(key), func(c *client) behaviour { return patient{stream: c.rng.IntN(4) > 0} })
		}
	}
	for range others {
		start(noKey, crowdSecret, crowdBehaviour)
	}
	<-going.Done()
	r.asked = time.Since(began)
	all.Wait()
}
