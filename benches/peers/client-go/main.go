// Command client-go is the peer that informer is put beside: a program with client-go's informers as they come,
// which tells what happens in lines of JSON on stdout. `history` is driven by lines on stdin; the program on its other
// side is `tests/long-runs/src/bin/beside`, whose own informer speaks the same lines. `sync`, `drain` and `events`
// are measured by `benches/src/bin/side-by-side`.
//
//	client-go history --kubeconfig FILE | --server URL --namespace NAME [--initial list] [--quiet] [--block]
//	client-go sync    --kubeconfig FILE | --recording FILE [--initial list] [--kind typed|metadata|dynamic] [--wire protobuf|json] [--strip]
//	client-go drain   --kubeconfig FILE | --recording FILE [--initial list] [--wire protobuf|json] [--metadata]
//	client-go events  --kubeconfig FILE [--wire protobuf|json] [--bursts N] [--drain]
package main

import (
	"fmt"
	"os"
	"slices"
)

type subcommand struct {
	name, summary string
	run           func(arguments []string) error
}

var subcommands = []subcommand{
	{"history", "run an informer of Pods and tell what its handler is told", history},
	{"sync", "sync an informer of Pods and tell what it took", syncPods},
	{"drain", "receive what such an informer does, and tell what that takes", drain},
	{"events", "sync an informer of Pods, or a drain, and tell what changes of them take", events},
	{"version", "tell the version of client-go", version},
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	at := slices.IndexFunc(subcommands, func(s subcommand) bool { return s.name == os.Args[1] })
	if at < 0 {
		usage()
	}
	if err := subcommands[at].run(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}

func version([]string) error {
	line := hello()
	_, err := fmt.Println(line.Library, line.Version)
	return err
}

func usage() {
	for _, s := range subcommands {
		fmt.Fprintf(os.Stderr, "%-10s %s\n", s.name, s.summary)
	}
	os.Exit(2)
}
