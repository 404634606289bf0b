// Package group keeps a list of the expert hosts that are there, by hashicorp/memberlist: hosts
// tell each other who has come, ping each other, and take out who does not answer. Only hosts are
// in it; engines ask a host for the list (frame.Watch).
//
//	group.go      Group: joining, leaving, and who hears of changes
//	transport.go  what memberlist sends and gets: packets by UDP, and streams that the host dials
//	              and takes
//
// A group may fall apart while the network between its hosts is cut. It is whole again once a host
// reaches one that its Config.Join names.
package group
