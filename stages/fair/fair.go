// Package fair counts what each of several keys had of something that they share, so that it can be
// given to the one that has had least for its weight. It decides nothing itself.
//
// A key of weight 3 is to have three times what one of weight 1 has. So what an account had is
// counted by its weight: what it was served, divided by that.
//
// A key that was idle must not live on what it did not use meanwhile, nor may it fall behind for
// what it used alone. So a clock counts what an active account had on average, and an account that
// becomes active again is set to at least that (start-time fair queueing, with the clock of
// generalized processor sharing). The clock moves as long as anybody is served: newcomers cannot
// overtake somebody forever, whoever else is stuck.
package fair

// MaxWeight is the largest weight of an account; the least is 1.
const MaxWeight = 1000

// one is what a piece that was served counts for an account of weight 1. Larger weights divide it,
// and what is left over counts with the next piece.
const one = 1 << 16

// Clock counts what was served to an active account of weight 1, on average. The zero value is
// ready for use.
type Clock struct {
	now    int64
	rest   int64 // served since the clock moved last
	most   int64 // the most that any account had
	active int64 // the weights of the accounts that are active
}

// Account is what one key had. The zero value is that of a new key of weight 1.
type Account struct {
	had   int64 // by its weight; set forward to the clock after idleness
	rest  int64 // served, and too little to count
	open  int
	extra int64 // its weight beyond 1
}

// Open makes an account active, for one more reason until Close.
func (c *Clock) Open(a *Account) {
	if a.open++; a.open > 1 {
		return
	}
	if a.had <= c.now {
		a.had, a.rest = c.now, 0 // as a new one has it
	}
	c.active += a.weight()
}

// Close ends what Open began. Once nobody is active, nobody has to wait for anybody: all are equal
// again. It reports whether that is so.
func (c *Clock) Close(a *Account) (idle bool) {
	if a.open--; a.open > 0 {
		return false
	}
	if c.active -= a.weight(); c.active > 0 {
		return false
	}
	c.now, c.rest = max(c.now, c.most), 0
	return true
}

// Weigh gives an account a weight, between 1 and MaxWeight. What it had before counts as it did.
func (c *Clock) Weigh(a *Account, weight int) {
	extra := int64(min(max(weight, 1), MaxWeight) - 1)
	if a.Active() {
		c.active += extra - a.extra
	}
	a.extra = extra
}

// Serve counts n more for an account that is active.
func (c *Clock) Serve(a *Account, n int64) {
	n *= one
	a.had += (a.rest + n) / a.weight()
	a.rest = (a.rest + n) % a.weight()
	c.most = max(c.most, a.had)
	c.now += (c.rest + n) / c.active
	c.rest = (c.rest + n) % c.active
}

// Had returns what an account had by its weight. Only the order of such figures has a meaning.
func (a *Account) Had() int64 { return a.had }

// With returns what an account will have had once it is served n more.
func (a *Account) With(n int64) int64 { return a.had + (a.rest+n*one)/a.weight() }

// Weight returns the account's weight.
func (a *Account) Weight() int { return int(a.weight()) }

func (a *Account) weight() int64 { return 1 + a.extra }

// Active reports whether an account is open.
func (a *Account) Active() bool { return a.open > 0 }

// Ahead reports whether an account had more than an active one on average. One that is neither
// ahead nor active is as good as a new one.
func (c *Clock) Ahead(a *Account) bool { return a.had > c.now }
