// Package cgroup makes cgroups, of version 1 or 2, for programs that are to be measured or broken:
// with a memory limit, which may be lowered while they run, or with a disk that hardly answers. It
// needs root on Linux, and says what is missing where it cannot be had.
package cgroup
