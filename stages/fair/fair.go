// Package fair counts what each of several keys had of something that they share, so that it can be
// given to the one that has had least. It decides nothing itself.
//
// A key that was idle must not live on what it did not use meanwhile, nor may it fall behind for
// what it used alone. So a clock counts what an active account had on average, and an account that
// becomes active again is set to at least that (start-time fair queueing, with the clock of
// generalized processor sharing). The clock moves as long as anybody is served: newcomers cannot
// overtake somebody forever, whoever else is stuck.
package fair

// Clock counts what was served to an active account, on average. The zero value is ready for use.
type Clock struct {
	now    int64
	rest   int64 // served since the clock moved last
	most   int64 // the most that any account had
	active int
}

// Account is what one key had. The zero value is that of a new key.
type Account struct {
	had  int64 // set forward to the clock after idleness
	open int
}

// Open makes an account active, for one more reason until Close.
func (c *Clock) Open(a *Account) {
	if a.open++; a.open == 1 {
		a.had = max(a.had, c.now)
		c.active++
	}
}

// Close ends what Open began. Once nobody is active, nobody has to wait for anybody: all are equal
// again. It reports whether that is so.
func (c *Clock) Close(a *Account) (idle bool) {
	if a.open--; a.open > 0 {
		return false
	}
	if c.active--; c.active > 0 {
		return false
	}
	c.now, c.rest = max(c.now, c.most), 0
	return true
}

// Serve counts n more for an account that is active.
func (c *Clock) Serve(a *Account, n int64) {
	a.had += n
	c.most = max(c.most, a.had)
	c.rest += n
	if by := c.rest / int64(c.active); by > 0 {
		c.now += by
		c.rest -= by * int64(c.active)
	}
}

// Had returns what an account had.
func (a *Account) Had() int64 { return a.had }

// Active reports whether an account is open.
func (a *Account) Active() bool { return a.open > 0 }

// Ahead reports whether an account had more than an active one on average. One that is neither
// ahead nor active is as good as a new one.
func (c *Clock) Ahead(a *Account) bool { return a.had > c.now }
