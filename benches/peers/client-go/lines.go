package main

import (
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// The lines on stdout. All have `line`, their kind.

type helloLine struct {
	Line    string `json:"line"`
	Library string `json:"library"`
	Version string `json:"version"`
}

// eventLine is one call of the handler. `from…` is the old state of an update.
type eventLine struct {
	Line                string `json:"line"`
	Key                 string `json:"key"`
	UID                 string `json:"uid"`
	ResourceVersion     string `json:"resourceVersion"`
	FromUID             string `json:"fromUid,omitempty"`
	FromResourceVersion string `json:"fromResourceVersion,omitempty"`
	Initial             bool   `json:"initial,omitempty"`
	FinalStateUnknown   bool   `json:"finalStateUnknown,omitempty"`
}

// reportLine answers the order `report`.
type reportLine struct {
	Line             string   `json:"line"`
	Synced           bool     `json:"synced"`
	Stored           int      `json:"stored"`
	Added            int64    `json:"added"`
	Updated          int64    `json:"updated"`
	UpdatedUnchanged int64    `json:"updatedUnchanged"`
	Deleted          int64    `json:"deleted"`
	Lists            int64    `json:"lists"`
	StreamingLists   int64    `json:"streamingLists"`
	Watches          int64    `json:"watches"`
	HeapBytes        uint64   `json:"heapBytes"`
	ResidentBytes    uint64   `json:"residentBytes"`
	Said             []string `json:"said"`
}

// handledLine answers the order `handled`: the version that the handler was last given for each key.
type handledLine struct {
	Line     string            `json:"line"`
	Versions map[string]string `json:"versions"`
}

var stdout sync.Mutex

// write prints one line. Once nobody reads them any more, there is nothing left to do here.
func write(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	stdout.Lock()
	defer stdout.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n'))
}

func hello() helloLine {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/client-go" {
				version = module.Version
			}
		}
	}
	return helloLine{"hello", "client-go", version + " (" + runtime.Version() + ")"}
}

// memory is the heap after a collection, and the resident memory after what is free was given back.
func memory() (heap, inMemory uint64) {
	runtime.GC()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	now, _ := resident()
	return stats.HeapAlloc, now
}
