// Makes the schema table of the crate k8s-protobuf from Kubernetes' Go types, and pairs of protobuf and JSON to test it with.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to make: table, openapi or pairs")
	}
	kinds, err := kinds()
	if err != nil {
		return err
	}
	s, err := newSchema(kinds)
	if err != nil {
		return err
	}
	switch args[0] {
	case "table":
		return writeTable(os.Stdout, s)
	case "openapi":
		return writeOpenapi(os.Stdout, s)
	case "pairs":
		return pairs(s, args[1:])
	default:
		return fmt.Errorf("%q is neither table, openapi nor pairs", args[0])
	}
}
