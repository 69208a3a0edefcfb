// Command client-go-inproc measures what client-go's store and shared informers cost inside a process, for
// benches/src/bin/in-process, which puts the figures beside ours. Each figure is a line on stdout: a name and a number.
//
//	client-go-inproc events|store|writers|memory [--quick]
package main

import (
	"fmt"
	"os"
	"slices"
)

var parts = map[string]func(quick bool){
	"events":  events,
	"store":   lookups,
	"writers": writers,
	"memory":  memory,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: client-go-inproc events|store|writers|memory [--quick]")
		os.Exit(2)
	}
	parts[os.Args[1]](slices.Contains(os.Args[2:], "--quick"))
}

// figure prints one.
func figure(name string, value float64) {
	fmt.Printf("client-go.%s %g\n", name, value)
}
