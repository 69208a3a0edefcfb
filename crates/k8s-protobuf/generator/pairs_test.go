package main

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
)

func TestPairsOfASeedAreTheSame(t *testing.T) {
	s := schemaOfAll(t)
	s.kinds = s.kinds[:20]
	made := make([]bytes.Buffer, 3)
	for i, seed := range []uint64{7, 7, 8} {
		if err := writePairs(&made[i], s, 9, seed); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0].Bytes(), made[1].Bytes()) || bytes.Equal(made[0].Bytes(), made[2].Bytes()) {
		t.Error("pairs do not depend on the seed, or on more than that")
	}
}

// And what Go has read does not change when it is written and read again.
func TestEightObjectsBringEveryPointerToNilAndToAValue(t *testing.T) {
	s := schemaOfAll(t)
	for _, kind := range s.kinds {
		seen := map[string]int{} // 1 nil, 2 set
		filler := newFiller(1, kind)
		for _, style := range styles[:8] {
			object := kind.newObject()
			filler.fill(object, style)
			pair, err := s.pair(kind, object)
			if err != nil {
				t.Fatalf("%v: %v", kind, err)
			}
			note(seen, reflect.ValueOf(pair.decoded).Elem())
			again, err := s.pair(kind, pair.decoded)
			// The protobuf may differ: nil bytes in a map come back as empty ones.
			if err != nil || !bytes.Equal(again.json, pair.json) {
				t.Errorf("%v, %q: is not the same when it is written and read again (%v)", kind, style.name, err)
			}
		}
		for _, field := range slices.Sorted(maps.Keys(seen)) {
			if seen[field] != 3 {
				t.Errorf("%v: %v was %v only", kind, field, []string{"", "nil", "set"}[seen[field]])
			}
		}
	}
}

// note collects which pointers in a value are nil and which are set.
func note(seen map[string]int, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			number, _ := protobufNumber(v.Type().Field(i))
			if number == 0 {
				continue
			}
			if field := v.Field(i); field.Kind() == reflect.Pointer {
				state := 2
				if field.IsNil() {
					state = 1
				}
				seen[fmt.Sprintf("%v.%v", v.Type(), v.Type().Field(i).Name)] |= state
			}
			note(seen, v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			note(seen, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			note(seen, v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			note(seen, v.MapIndex(key))
		}
	}
}
