// Command client-go is the peer that informer is put beside: a program with client-go's informers as they come,
// driven by lines on stdin, which tells what happens in lines of JSON on stdout. The program on the other side is
// `tests/long-runs/src/bin/beside`, whose own informer speaks the same lines.
//
//	client-go history --kubeconfig FILE | --server URL --namespace NAME [--initial list] [--quiet] [--block]
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

func usage() {
	for _, s := range subcommands {
		fmt.Fprintf(os.Stderr, "%-10s %s\n", s.name, s.summary)
	}
	os.Exit(2)
}
