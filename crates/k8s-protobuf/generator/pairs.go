package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// pairs is the subcommand of this name.
func pairs(s *schemaDef, args []string) error {
	set := flag.NewFlagSet("pairs", flag.ContinueOnError)
	perKind := set.Int("per-kind", 12, "how many objects to make of each kind")
	seed := set.Uint64("seed", 1, "of the random values: the same seed makes the same pairs")
	path := set.String("out", "", "file to write; standard output if empty")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *path == "" {
		return writePairs(os.Stdout, s, *perKind, *seed)
	}
	file, err := os.Create(*path)
	if err != nil {
		return err
	}
	if err := writePairs(file, s, *perKind, *seed); err != nil {
		return err
	}
	return file.Close()
}

// writePairs writes the pairs of all kinds: of each the kind, the protobuf and the JSON, each after its length as a u32.
func writePairs(out io.Writer, s *schemaDef, perKind int, seed uint64) error {
	w := bufio.NewWriter(out)
	for _, kind := range s.kinds {
		filler := newFiller(seed, kind)
		for i := range perKind {
			object := kind.newObject()
			filler.fill(object, styles[i%len(styles)])
			pair, err := s.pair(kind, object)
			if err != nil {
				return fmt.Errorf("%v, %q: %w", kind, styles[i%len(styles)].name, err)
			}
			for _, part := range [][]byte{[]byte(kind.String()), pair.protobuf, pair.json} {
				w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
				w.Write(part)
			}
		}
	}
	return w.Flush()
}

type pair struct {
	protobuf, json []byte
	decoded        runtime.Object
}

// serializer decodes into what it is given, so that it needs no scheme.
var serializer = protobuf.NewSerializer(nil, runtime.NewScheme())

// pair writes an object as protobuf, reads that again, and writes what was read as JSON.
func (s *schemaDef) pair(kind kindDef, object runtime.Object) (pair, error) {
	var encoded bytes.Buffer
	if err := serializer.Encode(object, &encoded); err != nil {
		return pair{}, err
	}
	decoded := reflect.New(kind.typ).Interface().(runtime.Object)
	if _, _, err := serializer.Decode(encoded.Bytes(), nil, decoded); err != nil {
		return pair{}, err
	}
	kind.setType(decoded)
	if err := s.makeItems(kind, decoded); err != nil {
		return pair{}, err
	}
	text, err := json.Marshal(decoded)
	return pair{encoded.Bytes(), text, decoded}, err
}

// makeItems makes the items of an empty list an empty slice instead of nil, as the API server does: JSON is [], not null.
func (s *schemaDef) makeItems(kind kindDef, object runtime.Object) error {
	for _, field := range s.byType[kind.typ].fields {
		if field.flags&listItems != 0 {
			items, err := meta.GetItemsPtr(object)
			if err != nil {
				return err
			}
			if slice := reflect.ValueOf(items).Elem(); slice.IsNil() {
				slice.Set(reflect.MakeSlice(slice.Type(), 0, 0))
			}
		}
	}
	return nil
}
