package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The annotation that says when a state was sent: nanoseconds since 1970, always in as many digits.
const (
	annotation = "benches.informer/sent"
	digits     = 20
)

// magic is what the API server puts before protobuf.
var magic = []byte("k8s\x00")

// Fields of runtime.Unknown, Pod, ObjectMeta and of a map's entry.
const (
	unknownTypeMeta, unknownRaw protowire.Number = 1, 2

	podMetadata, podSpec, podStatus protowire.Number = 1, 2, 3

	metaName, metaNamespace, metaUID, metaAnnotations protowire.Number = 1, 3, 5, 12

	entryKey, entryValue protowire.Number = 1, 2
)

// pod is a stored Pod whose annotation can be written over.
type pod struct {
	key   string
	value []byte
	// The annotation's digits, inside of value.
	sent []byte
}

// newPod gives a stored Pod the annotation, unless it has it.
func newPod(key string, stored []byte) (*pod, error) {
	if at := find(stored); at != nil {
		return &pod{key, stored, at}, nil
	}
	unknown, found := bytes.CutPrefix(stored, magic)
	if !found {
		return nil, errors.New("is not stored as protobuf")
	}
	value, err := inside(unknown, unknownRaw, func(raw []byte) ([]byte, error) {
		return inside(raw, podMetadata, func(metadata []byte) ([]byte, error) {
			return append(bytes.Clone(metadata), sentEntry()...), nil
		})
	})
	if err != nil {
		return nil, err
	}
	value = append(bytes.Clone(magic), value...)
	return &pod{key, value, find(value)}, nil
}

// lastPod is as small as can be.
func lastPod() *pod {
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	join := func(fields ...[]byte) []byte { return bytes.Join(fields, nil) }
	metadata := join(
		field(metaName, []byte(lastName)), field(metaNamespace, []byte(lastNamespace)),
		field(metaUID, []byte("00000000-0000-4000-8000-000000000000")), sentEntry(),
	)
	raw := join(field(podMetadata, metadata), field(podSpec, nil), field(podStatus, nil))
	// apiVersion and kind.
	typeMeta := join(field(1, []byte("v1")), field(2, []byte("Pod")))
	value := join(magic, field(unknownTypeMeta, typeMeta), field(unknownRaw, raw))
	return &pod{lastKey, value, find(value)}
}

// stamp says that it is sent now.
func (p *pod) stamp(now time.Time) {
	copy(p.sent, fmt.Sprintf("%0*d", digits, now.UnixNano()))
}

// sentEntry is the field of metadata with the annotation.
func sentEntry() []byte {
	var entry []byte
	entry = protowire.AppendTag(entry, entryKey, protowire.BytesType)
	entry = protowire.AppendString(entry, annotation)
	entry = protowire.AppendTag(entry, entryValue, protowire.BytesType)
	entry = protowire.AppendBytes(entry, bytes.Repeat([]byte("0"), digits))
	return protowire.AppendBytes(protowire.AppendTag(nil, metaAnnotations, protowire.BytesType), entry)
}

// find returns the digits of the annotation, as a part of value; nil if there are none.
func find(value []byte) []byte {
	before := protowire.AppendTag([]byte(annotation), entryValue, protowire.BytesType)
	before = protowire.AppendVarint(before, digits)
	at := bytes.Index(value, before)
	if at < 0 || len(value) < at+len(before)+digits {
		return nil
	}
	return value[at+len(before):][:digits]
}

// inside replaces the first field of that number by what `change` makes of it.
func inside(message []byte, number protowire.Number, change func([]byte) ([]byte, error)) ([]byte, error) {
	for at := 0; at < len(message); {
		found, kind, tag := protowire.ConsumeTag(message[at:])
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		length := protowire.ConsumeFieldValue(found, kind, message[at+tag:])
		if length < 0 {
			return nil, protowire.ParseError(length)
		}
		end := at + tag + length
		if found == number && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[at+tag : end])
			value, err := change(value)
			if err != nil {
				return nil, err
			}
			changed := protowire.AppendBytes(bytes.Clone(message[:at+tag]), value)
			return append(changed, message[end:]...), nil
		}
		at = end
	}
	return nil, fmt.Errorf("has no field %d", number)
}
