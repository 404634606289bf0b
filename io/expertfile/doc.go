// Package expertfile reads the routed experts of a packed model directory: one file for each layer,
// with records of one size, expert e at byte e·size. It knows the layout of records and reads or
// maps them. The caller decides what is cached, where and for how long.
package expertfile
