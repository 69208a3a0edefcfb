package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// writeColumns writes as Rust source the column definitions of the kinds that have other columns than the default.
func writeColumns(out io.Writer) error {
	byKind := map[schema.GroupKind][]metav1.TableColumnDefinition{}
	for _, kind := range kinds() {
		object, err := newObject(kind)
		if err != nil {
			return err
		}
		internal, err := internalOf(object)
		if err != nil {
			return fmt.Errorf("%v: %w", kind, err)
		}
		table, err := tableOf(kind.GroupKind(), internal)
		if err != nil {
			return fmt.Errorf("%v: %w", kind, err)
		}
		byKind[kind.GroupKind()] = table.ColumnDefinitions
	}
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "// Made by `go run ./printers columns` in tests/real-cluster; do not edit.")
	fmt.Fprintln(w, "use super::ColumnDefinition;")
	fmt.Fprintln(w, "use super::ColumnType::*;")
	// Nearly all tables have these two.
	metadata := metav1.ObjectMeta{}.SwaggerDoc()
	named := map[string]metav1.TableColumnDefinition{
		"NAME": {Name: "Name", Type: "string", Format: "name", Description: metadata["name"]},
		"AGE":  {Name: "Age", Type: "string", Description: metadata["creationTimestamp"]},
	}
	named["CREATED_AT"] = metav1.TableColumnDefinition{Name: "Created At", Type: "date", Description: metadata["creationTimestamp"]}
	for _, name := range []string{"NAME", "AGE", "CREATED_AT"} {
		fmt.Fprintf(w, "\npub(super) const %s: ColumnDefinition = %s;\n", name, definition(named[name]))
	}
	sorted := slices.SortedFunc(maps.Keys(byKind), func(a, b schema.GroupKind) int { return strings.Compare(a.Kind+a.Group, b.Kind+b.Group) })
	var last schema.GroupKind
	for _, kind := range sorted {
		columns := byKind[kind]
		if isDefault(columns) {
			continue
		}
		if kind.Kind == last.Kind {
			if !slices.Equal(columns, byKind[last]) {
				return fmt.Errorf("%v and %v have other columns, so the constants need other names", kind, last)
			}
			continue
		}
		last = kind
		fmt.Fprintln(w)
		fmt.Fprintf(w, "pub(super) static %s: [ColumnDefinition; %d] = [\n", constant(kind.Kind), len(columns))
		for _, column := range columns {
			text := definition(column)
			for name, common := range named {
				if column == common {
					text = name
				}
			}
			fmt.Fprintf(w, "    %s,\n", text)
		}
		fmt.Fprintln(w, "];")
	}
	return w.Flush()
}

func definition(column metav1.TableColumnDefinition) string {
	typ := strings.ToUpper(column.Type[:1]) + column.Type[1:]
	return fmt.Sprintf("ColumnDefinition::new(%q, %s, %q, %d, %q)", column.Name, typ, column.Format, column.Priority, column.Description)
}

func isDefault(columns []metav1.TableColumnDefinition) bool {
	return len(columns) == 2 && columns[1].Name == "Created At"
}

// constant is a kind's name in capitals: CSI_DRIVER of CSIDriver.
func constant(kind string) string {
	var name strings.Builder
	letters := []rune(kind)
	for i, letter := range letters {
		startsWord := unicode.IsUpper(letter) && i > 0 &&
			(unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if startsWord {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(letter))
	}
	return name.String()
}
