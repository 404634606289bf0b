// Package cgroup makes cgroups of version 1 or 2 for programs that are measured, or tested with
// faults: with a memory limit that can be lowered while they run, or with a very slow disk. It
// needs root on Linux, and says what is missing if it cannot make one.
package cgroup
