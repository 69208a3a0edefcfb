// Command client-go is the peer that informer is put beside: a program with client-go's informers as they come,
// which tells what happens in lines of JSON on stdout. `history` is driven by lines on stdin; the program on its other
// side is `tests/long-runs/src/bin/beside`, whose own informer speaks the same lines. The others are measured by
// `benches/src/bin/side-by-side`.
//
//	client-go history --kubeconfig FILE | --server URL --namespace NAME [--initial list] [--quiet] [--block]
//	client-go sync    --kubeconfig FILE | --recording FILE [--initial list] [--wire protobuf|json]
//	client-go events  --kubeconfig FILE
//	client-go inside  by-label|handlers|relist [--quick]
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
	{"events", "sync an informer of Pods and tell what changes of them take", events},
	{"inside", "tell what reads, handlers and relists take without a server", inside},
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
