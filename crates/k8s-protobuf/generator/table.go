package main

import (
	"bufio"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
)

// writeTable writes the schema as Rust source.
func writeTable(out io.Writer, s *schemaDef) error {
	if len(s.messages) > 1<<16 {
		return fmt.Errorf("%d messages are more than the table's u16 can number", len(s.messages))
	}
	w := bufio.NewWriter(out)
	if err := writeHead(w, "table"); err != nil {
		return err
	}
	fmt.Fprintln(w, "use super::FieldKind::*;")
	fmt.Fprintln(w, "use super::flags::*;")
	fmt.Fprintln(w, "use super::{KindDef, MessageDef, f, m};")
	fmt.Fprintln(w)

	fmt.Fprintln(w, "/// Sorted by API version, then kind.")
	fmt.Fprintf(w, "pub(super) static KINDS: [KindDef; %d] = [\n", len(s.kinds))
	for _, kind := range s.kinds {
		fmt.Fprintf(w, "    KindDef { api_version: %q, kind: %q, message: %d },\n", kind.apiVersion, kind.kind, s.byType[kind.typ].index)
	}
	fmt.Fprintln(w, "];")
	fmt.Fprintln(w)

	fmt.Fprintln(w, "/// Sorted by name.")
	fmt.Fprintf(w, "pub(super) static MESSAGES: [MessageDef; %d] = [\n", len(s.messages))
	for _, message := range s.messages {
		fields := make([]string, len(message.fields))
		for i, field := range message.fields {
			fields[i] = rustField(field)
		}
		fmt.Fprintf(w, "    m(%q, &[%s]),\n", message.name(), strings.Join(fields, ", "))
	}
	fmt.Fprintln(w, "];")
	return w.Flush()
}

// writeHead writes what made the file, and from what.
func writeHead(w io.Writer, command string) error {
	versions, err := moduleVersions()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "// Made by `go run . %s` in crates/k8s-protobuf/generator from %s; do not edit.\n", command, strings.Join(versions, ", "))
	return err
}

func rustField(field fieldDef) string {
	var flags []string
	for bit, name := range flagNames {
		if field.flags&(1<<bit) != 0 {
			flags = append(flags, name)
		}
	}
	if len(flags) == 0 {
		flags = []string{"0"}
	}
	message := 0
	if field.message != nil {
		message = field.message.index
	}
	return fmt.Sprintf("f(%d, %q, %s, %s, %d)", field.number, field.name, field.kind, strings.Join(flags, " | "), message)
}

// moduleVersions names the modules whose types are read, as this program was built with them.
func moduleVersions() ([]string, error) {
	modules := []string{
		"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/kube-aggregator", "k8s.io/metrics",
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, fmt.Errorf("this program was built without modules: use `go run .`")
	}
	var versions []string
	for _, module := range info.Deps {
		if slices.Contains(modules, module.Path) {
			versions = append(versions, module.Path+" "+module.Version)
		}
	}
	if len(versions) != len(modules) {
		return nil, fmt.Errorf("this program was built with other modules than it knows: %v", versions)
	}
	return versions, nil
}
