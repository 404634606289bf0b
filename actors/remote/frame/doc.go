// Package frame is what an engine and an expert host, or two hosts, say to each other over a stream
// of bytes: frames of a fixed layout, each with a header that says what it is, which ask it belongs
// to, and how long it is. It does no I/O beyond reading a frame, and allocates no more than a
// frame's size.
//
//	Hello    engine -> host   which model, by its fingerprint and shape, and who asks: a token
//	Welcome  host -> engine   what the host has room for, how much it takes at once, its device
//	Refused  host -> engine   why it does not serve; the end of the stream
//	Ask      engine -> host   experts of one layer, the rows of each, and those rows
//	Answer   host -> engine   the outputs of some of an ask's experts, or the sums of all, and where
//	                          the time went
//	Failed   host -> engine   why the rest of an ask is not answered
//	Ping     engine -> host   answered by a Pong; their silence says that the other is gone. Both
//	                          may carry bytes for nothing, which measures the network
//	Share    engine -> host   what is the host's own in the placement of an epoch. It refuses asks
//	                          of earlier ones, and reads ahead what is its own
//	Drain    host -> engine   ask no more; what was asked before is answered
//	Watch    engine -> host   asks for the host's group, now and whenever it changes
//	Group    host -> engine   the addresses of all hosts of its group, its own first
//	Join     host -> host     which model, and who asks: the proof of a token. It begins a stream of
//	                          what the hosts of a group say to each other
//	Joined   host -> host     the host may; the rest of the stream has no frames
//
// All numbers are little-endian, as are the floats, which every processor that runs the engine can
// take as they are. A frame of a kind that a side does not expect, or whose numbers do not fit
// together, is an error that ends the stream.
package frame
