package main

import (
	"encoding/json"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The lines on stdout, which `benches/peers/controllers/src/lib.rs` explains.

type helloLine struct {
	Line    string `json:"line"`
	Library string `json:"library"`
	Version string `json:"version"`
}

type reconcileLine struct {
	Line       string   `json:"line"`
	At         int64    `json:"at"`
	Name       string   `json:"name"`
	UID        string   `json:"uid"`
	Version    string   `json:"version"`
	Generation int64    `json:"generation"`
	Wanted     int      `json:"wanted"`
	Children   []string `json:"children"`
}

type failedLine struct {
	Line    string `json:"line"`
	At      int64  `json:"at"`
	Message string `json:"message"`
}

type fiveLine struct {
	Line string `json:"line"`
	At   int64  `json:"at"`
}

var stdout sync.Mutex

func write(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	stdout.Lock()
	defer stdout.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n'))
}

func sayHello() {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "sigs.k8s.io/controller-runtime" {
				version = module.Version
			}
		}
	}
	write(helloLine{"hello", "controller-runtime", version})
}

func sayReconcile(set *Set, children []corev1.ConfigMap) {
	uids := make([]string, 0, len(children))
	for at := range children {
		uids = append(uids, string(children[at].UID))
	}
	write(reconcileLine{
		"reconcile", now(), set.Name, string(set.UID), set.ResourceVersion, set.Generation, set.Spec.Replicas, uids,
	})
}

func sayFailed(err error) { write(failedLine{"failed", now(), err.Error()}) }

// countdown counts the reconciles of five controllers, and says when all are done. What Go has freed is given back
// before, so that its resident memory is what it needs.
type countdown struct{ left atomic.Int64 }

func (c *countdown) count() {
	if c.left.Add(-1) == 0 {
		debug.FreeOSMemory()
		write(fiveLine{"five", now()})
	}
}

func now() int64 { return time.Now().UnixMicro() }
