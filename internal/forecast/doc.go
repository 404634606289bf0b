// Package forecast says how fast one text should decode on this machine, from what the machine can
// do and what the model needs. doctor prints a forecast before anything has run; bench compares its
// measurements with one.
//
// Memory and DiskRate are what the machine can do, measured with the threads that the engine uses
// and with the records of its model. Kept is the share of expert uses that need no read. Of puts
// them together: at best memory and disk work side by side and the slower decides, at worst a token
// reads first and computes then.
package forecast
