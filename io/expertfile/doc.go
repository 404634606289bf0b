// Package expertfile reads the routed experts of a packed model directory: one file per layer,
// records of one size, expert e at byte e·size. It knows the records' layout and reads or maps
// them; what is cached, where and for how long is the caller's.
package expertfile
