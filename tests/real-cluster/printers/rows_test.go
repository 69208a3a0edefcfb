package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/yaml"
)

// now is when all rows are printed.
var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// row is a line of the files. Object is as a server sends it, with defaults.
type row struct {
	Group      string                     `json:"group"`
	Kind       string                     `json:"kind"`
	Columns    []string                   `json:"columns"`
	Cells      []any                      `json:"cells"`
	Conditions []metav1.TableRowCondition `json:"conditions,omitempty"`
	Object     json.RawMessage            `json:"object"`
}

// TestRows writes the rows of objects to files in the folder PRINTERS_OUT: of those in objects/, and of those in the file
// PRINTERS_PAIRS, which the generator of k8s-protobuf makes. It is a test because only tests can set the clock.
func TestRows(t *testing.T) {
	out := os.Getenv("PRINTERS_OUT")
	if out == "" {
		t.Skip("set PRINTERS_OUT to a folder")
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		writeFile(t, filepath.Join(out, "rows.jsonl"), writeObjects)
		writeFile(t, filepath.Join(out, "custom.jsonl"), writeCustom)
		writeFile(t, filepath.Join(out, "columns.jsonl"), writeAllColumns)
		if pairs := os.Getenv("PRINTERS_PAIRS"); pairs != "" {
			writeFile(t, filepath.Join(out, "corpus.jsonl"), func(w io.Writer) error { return writePairs(w, pairs) })
			writeFile(t, filepath.Join(out, "paths.jsonl"), writePaths)
		}
	})
}

func writeFile(t *testing.T, path string, write func(io.Writer) error) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	if err := cmp.Or(write(w), w.Flush(), file.Close()); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// writeObjects writes the rows of the objects written by hand.
func writeObjects(w io.Writer) error {
	return documents("objects/built-in/*.yaml", func(document []byte) error { return writeRow(w, document) })
}

// documents calls use with each YAML document of the files, as JSON.
func documents(pattern string, use func([]byte) error) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for i, document := range strings.Split("\n"+string(text), "\n---\n") {
			converted, err := yaml.YAMLToJSONStrict([]byte(document))
			if err == nil {
				err = use(converted)
			}
			if err != nil {
				return fmt.Errorf("%s, document %d: %w", file, i+1, err)
			}
		}
	}
	return nil
}

// writePairs writes the rows of the objects of the corpus of k8s-protobuf: kind, protobuf and JSON, each after its length.
func writePairs(w io.Writer, path string) error {
	pairs, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	known := kinds()
	next := func() []byte {
		length := binary.BigEndian.Uint32(pairs)
		part := pairs[4 : 4+length]
		pairs = pairs[4+length:]
		return part
	}
	for len(pairs) > 0 {
		name := string(next())
		next()
		document := next()
		slash := strings.LastIndexByte(name, '/')
		if slices.Contains(known, schema.FromAPIVersionAndKind(name[:slash], name[slash+1:])) {
			if err := writeRow(w, document); err != nil && !errors.Is(err, errUnconvertible) {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// errUnconvertible is for random objects that no server would have accepted.
var errUnconvertible = errors.New("not convertible")

func writeRow(w io.Writer, document []byte) error {
	internal, kind, err := stored(document)
	if err != nil {
		return err
	}
	sent, err := legacyscheme.Scheme.ConvertToVersion(internal, kind.GroupVersion())
	if err != nil {
		return errors.Join(errUnconvertible, err)
	}
	object, err := json.Marshal(sent)
	if err != nil {
		return err
	}
	table, err := tableOrPanic(kind.GroupKind(), internal)
	if err != nil || table == nil {
		return err
	}
	if len(table.Rows) != 1 {
		return fmt.Errorf("%d rows", len(table.Rows))
	}
	line := row{Group: kind.Group, Kind: kind.Kind, Cells: table.Rows[0].Cells, Conditions: table.Rows[0].Conditions, Object: object}
	for _, column := range table.ColumnDefinitions {
		line.Columns = append(line.Columns, column.Name)
	}
	return writeLine(w, line)
}

// stored is an object as a server has it in memory, once it was written and read.
func stored(document []byte) (runtime.Object, schema.GroupVersionKind, error) {
	var typeMeta metav1.TypeMeta
	if err := json.Unmarshal(document, &typeMeta); err != nil {
		return nil, schema.GroupVersionKind{}, err
	}
	kind := typeMeta.GroupVersionKind()
	for {
		object, err := newObject(kind)
		if err != nil {
			return nil, kind, err
		}
		if err := json.Unmarshal(document, object); err != nil {
			return nil, kind, err
		}
		internal, err := internalOf(object)
		if err != nil {
			return nil, kind, errors.Join(errUnconvertible, err)
		}
		again, err := json.Marshal(object)
		// Twice, as empty lists are not written.
		if err != nil || bytes.Equal(again, document) {
			return internal, kind, err
		}
		document = again
	}
}

// tableOrPanic is no table where the printer cannot cope with an object that no server would have accepted.
func tableOrPanic(kind schema.GroupKind, internal runtime.Object) (table *metav1.Table, err error) {
	defer func() {
		if recover() != nil {
			table, err = nil, nil
		}
	}()
	return tableOf(kind, internal)
}

func writeLine(w io.Writer, line any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

// writeAllColumns writes the column definitions of every kind.
func writeAllColumns(w io.Writer) error {
	for _, kind := range kinds() {
		object, err := newObject(kind)
		if err != nil {
			return err
		}
		internal, err := internalOf(object)
		if err != nil {
			return err
		}
		table, err := tableOf(kind.GroupKind(), internal)
		if err != nil {
			return err
		}
		if err := writeLine(w, map[string]any{"group": kind.Group, "kind": kind.Kind, "definitions": table.ColumnDefinitions}); err != nil {
			return err
		}
	}
	return nil
}
