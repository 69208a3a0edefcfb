package main

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// stored is a Pod as the API server stores it, but for the fields that nobody looks at.
func stored() []byte {
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	metadata := append(field(metaName, []byte("a")), field(metaUID, bytes.Repeat([]byte("u"), 200))...)
	raw := append(field(podMetadata, metadata), field(podSpec, []byte("spec"))...)
	unknown := append(field(unknownTypeMeta, []byte("type")), field(unknownRaw, raw)...)
	// contentType comes after the object.
	return append(append(bytes.Clone(magic), unknown...), field(4, nil)...)
}

func TestTheAnnotationIsAddedOnceAndWrittenOver(t *testing.T) {
	before := stored()
	first, err := newPod("key", bytes.Clone(before))
	if err != nil {
		t.Fatal(err)
	}
	first.stamp(time.Unix(1, 5))
	if want := "00000000001000000005"; string(first.sent) != want {
		t.Errorf("sent is %q instead of %q", first.sent, want)
	}
	again, err := newPod("key", bytes.Clone(first.value))
	if err != nil {
		t.Fatal(err)
	}
	again.stamp(time.Unix(2, 0))
	if len(again.value) != len(first.value) || bytes.Count(again.value, []byte(annotation)) != 1 {
		t.Errorf("the annotation is there twice: %q", again.value)
	}
	if !bytes.Contains(again.value, []byte("00000000002000000000")) {
		t.Errorf("the value has another time: %q", again.value)
	}
	// What is around it stays, in messages whose lengths are right.
	for _, value := range [][]byte{first.value, lastPod().value} {
		raw := get(t, value[len(magic):], unknownRaw)
		metadata := get(t, raw, podMetadata)
		entry := get(t, metadata, metaAnnotations)
		if key := string(get(t, entry, entryKey)); key != annotation {
			t.Errorf("the annotation is called %q", key)
		}
		get(t, raw, podSpec)
	}
}

func TestWhatIsNoStoredPodIsRefused(t *testing.T) {
	whole := stored()
	for _, value := range [][]byte{nil, []byte(`{"kind":"Pod"}`), whole[:4], whole[:len(whole)/2]} {
		if _, err := newPod("key", value); err == nil {
			t.Errorf("%q is taken", value)
		}
	}
}

func get(t *testing.T, message []byte, number protowire.Number) []byte {
	t.Helper()
	var found []byte
	_, err := inside(message, number, func(value []byte) ([]byte, error) {
		found = value
		return value, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
