// Package remote asks expert hosts for what expert-IO wants of them: it is the shell of
// stages.Outbox.Asks, as actors/expertmem is that of reads. It dials; nothing in it listens. The
// other side is actors/remote/host, and actors/remote/frame says what both send,
// actors/remote/wire how, and actors/remote/secrets how they know each other.
//
//	client.go  Client: all hosts of an engine
//	found.go   which hosts there are now, if some are asked who is in their group
//	link.go    one host: dialling, greeting, and the end of a connection
//	asks.go    asks under way, and their answers
//	sums.go    answers that are a sum for each row
//	late.go    answers that are late
//	probe.go   whether a host computes the same bits
//	network.go how fast the network is
//	survey.go  how fast a host and the network to it are, for forecasts
//
// A host is asked once it has shown that it has the same model and computes the same bits. Its
// connection ends when it breaks, or when nothing comes for Config.Patience although pings are
// sent; then every ask under way has failed, and expert-IO goes another way. It is dialled again
// all the while.
package remote
