package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// figuresLine is what `sync` and `events` print, as the other clients do: bytes and microseconds.
type figuresLine struct {
	Phase        string    `json:"phase"`
	Objects      int       `json:"objects"`
	CPUMicros    int64     `json:"cpuUs"`
	Heap         *heapLine `json:"heap"`
	Resident     uint64    `json:"resident"`
	ResidentPeak uint64    `json:"residentPeak"`
}

type heapLine struct {
	Settled uint64 `json:"settled"`
}

// stopwatch is the CPU time at which a phase began.
type stopwatch time.Duration

func start() stopwatch { return stopwatch(cpuTime()) }

func (s stopwatch) stop(phase string) figuresLine {
	return figuresLine{Phase: phase, CPUMicros: (cpuTime() - time.Duration(s)).Microseconds()}
}

// cpuTime is that of the process so far, user and system.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// heapInUse is the heap after collections: what a first one only finds, a second one sweeps.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// resident is the resident memory of the process, in bytes: now, and at most since it began.
func resident() (now, peak uint64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kibibytes, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kibibytes * 1024
		case "VmHWM":
			peak = kibibytes * 1024
		}
	}
	return now, peak
}

// micros is a time in microseconds, over a number of things done.
func micros(took time.Duration, of int) float64 {
	return float64(took.Nanoseconds()) / 1000 / float64(of)
}
