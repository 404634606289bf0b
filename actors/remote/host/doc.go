// Package host is an expert host: it computes experts of one model for engines elsewhere. It has
// the experts' memory, the reads and the core of expert-IO that an engine has, and no attention, no
// sequences and nothing that is lost when it goes. Engines reach it by package actors/remote; what
// both say is in actors/remote/frame.
//
//	open.go     opens a model's experts, and plans memory for them
//	host.go     Host, and the loop that runs expert-IO: one goroutine, which nothing blocks
//	jobs.go     an ask on its way: its plan, its waves, its answers
//	conn.go     one engine's connection: who it is, what it asks, what it is told
//	serve.go    takes connections, and ends
//	members.go  the group of hosts that this one is in: by one of them engines find all
//
// An ask becomes a step of one layer. Expert-IO finds its experts in memory or has them read, and
// sends waves of those that are there; each wave is one submission to the device, and one answer.
// Where sums are asked for, all waves of an ask are one answer. Credits bound what an engine has
// under way, and expert-IO bounds the waves.
package host
