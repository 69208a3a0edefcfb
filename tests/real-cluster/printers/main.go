// Command printers runs the printers of kube-apiserver, and writes what the tables of the crate k8s-serve are made of and
// tested with. It is built from the modules that the real API server of the tests is built from.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "printers:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 || args[0] != "columns" {
		return fmt.Errorf("say what to make: columns. (Rows are made by a test, as only tests can set the clock)")
	}
	return writeColumns(os.Stdout)
}
