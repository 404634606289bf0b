// Package cgroup makes cgroups, of version 1 or 2, for programs that are measured or broken on
// purpose: with a memory limit, which can be lowered while they run, or with a disk that hardly
// answers. It needs root on Linux. Where it cannot make one, it says what is missing.
package cgroup
