package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is that of the process so far, user and system.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// cores are those that the process may use.
func cores() (cores []int) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		panic(err)
	}
	for core := range 1024 {
		if all.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}

// keepTo keeps all threads of the process to some cores, and with them those that they will start.
func keepTo(cores ...int) {
	var some unix.CPUSet
	for _, core := range cores {
		some.Set(core)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		panic(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, &some)
		}
		// One may have ended meanwhile.
		if err != nil && !errors.Is(err, unix.ESRCH) {
			panic(err)
		}
	}
}

// pinTo keeps the goroutine on a thread of its own, and that on a core; the thread ends with the goroutine.
func pinTo(core int) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		panic(err)
	}
}

// allocations counts those of the process so far.
func allocations() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// heapInUse is the heap after collections: what a first one only finds, a second one sweeps.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// micros is a time in microseconds, over a number of things done.
func micros(took time.Duration, of int) float64 {
	return float64(took.Nanoseconds()) / 1000 / float64(of)
}

// name is that of a figure of so many objects, or of batches of so many.
func name(of string, size int) string { return fmt.Sprintf("%s.%d", of, size) }
