// Package expertfile reads the routed experts of a model. A packed model directory has one file for
// each layer, with records of one size, expert e at byte e·size. In files of another form, such as
// GGUF, the parts of a record lie apart (OpenSpread) and are read into one. The package knows the
// layout of records and reads or maps them. The caller decides what is cached, where and for how
// long.
package expertfile
