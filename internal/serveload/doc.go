// Package serveload loads a server with clients as they are: most read what they asked for, some
// leave in the middle, read slowly, send nonsense or far too much, or connect and say nothing.
// Every answer is compared with the same answer given before the load, and the server's vital signs
// are watched meanwhile. Run returns a Report, which says what was broken.
//
// The command in package run starts a server and does this; it takes a server that runs already,
// too.
package serveload
