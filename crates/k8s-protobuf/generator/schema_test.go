package main

import (
	"encoding/binary"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func schemaOfAll(t *testing.T) *schemaDef {
	t.Helper()
	kinds, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSchema(kinds)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTypesWithJSONOfTheirOwnAreTheSpecialOnes(t *testing.T) {
	s := schemaOfAll(t)
	for typ := range special {
		if !s.ownJSON[typ] {
			t.Errorf("%v is special, but is in no kind or has no JSON of its own", typ)
		}
	}
	if len(s.ownJSON) != len(special) {
		t.Errorf("special kinds are %v", slices.Collect(maps.Keys(s.ownJSON)))
	}
}

// Tags are written by hand. What counts is how the message is written.
func TestMessagesAreWrittenAsTheTableSays(t *testing.T) {
	type marshaler interface{ Marshal() ([]byte, error) }
	wireTypes := map[string]uint64{"Bool": 0, "I32": 0, "I64": 0, "F64": 1} // else 2: with a length
	for _, message := range schemaOfAll(t).messages {
		object := reflect.New(message.typ).Interface()
		filler := newFiller(1, kindDef{kind: message.name(), typ: message.typ})
		filler.fill(object, styles[1])
		written, err := object.(marshaler).Marshal()
		if err != nil {
			t.Errorf("%v: %v", message.name(), err)
		}
		want := map[uint64]uint64{}
		for _, field := range message.fields {
			want[uint64(field.number)] = 2
			if wire, ok := wireTypes[field.kind]; ok && field.flags&mapped == 0 {
				want[uint64(field.number)] = wire
			}
		}
		if got := wireTypesOf(t, written); !maps.Equal(got, want) {
			t.Errorf("%v: fields are written as %v, but the table has %v", message.name(), got, want)
		}
	}
}

func TestFieldsAreWhatTheirTagsAndTypesSay(t *testing.T) {
	s := schemaOfAll(t)
	rows := map[string]string{}
	for _, message := range s.messages {
		for _, field := range message.fields {
			holds := ""
			if field.message != nil {
				holds = field.message.name()
				field.message = nil // its place in the table may change
			}
			rows[message.name()] += rustField(field) + holds + "\n"
		}
	}
	for message, want := range map[string]string{
		"k8s.io/api/core/v1.ConfigMap": `f(1, "metadata", Message, OMIT_EMPTY, 0)k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta
f(2, "data", Str, MAP | POINTER | OMIT_EMPTY, 0)
f(3, "binaryData", Bytes, MAP | POINTER | OMIT_EMPTY, 0)
f(4, "immutable", Bool, POINTER | OMIT_EMPTY, 0)
`,
		"k8s.io/api/core/v1.Volume": `f(1, "name", Str, 0, 0)
f(2, "", Message, INLINE, 0)k8s.io/api/core/v1.VolumeSource
`,
		"k8s.io/api/rbac/v1.RoleList": `f(1, "metadata", Message, OMIT_EMPTY, 0)k8s.io/apimachinery/pkg/apis/meta/v1.ListMeta
f(2, "items", Message, REPEATED | POINTER | LIST_ITEMS, 0)k8s.io/api/rbac/v1.Role
`,
		"k8s.io/metrics/pkg/apis/metrics/v1beta1.ContainerMetrics": `f(1, "name", Str, 0, 0)
f(2, "usage", Quantity, MAP | POINTER, 0)
`,
	} {
		if rows[message] != want {
			t.Errorf("%v has the fields\n%v", message, rows[message])
		}
	}
	for _, row := range []string{
		`f(8, "creationTimestamp", Time, OMIT_EMPTY | OMIT_ZERO, 0)`,
		`f(4, "verbs", StrList, POINTER, 0)`,
		`f(2, "object", RawJson, 0, 0)`,
		`f(24, "items", PropsOrArray, POINTER | OMIT_EMPTY, 0)k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps`,
	} {
		if !slices.ContainsFunc(slices.Collect(maps.Values(rows)), func(fields string) bool { return strings.Contains("\n"+fields, "\n"+row+"\n") }) {
			t.Errorf("no message has %v", row)
		}
	}
}

// wireTypesOf lists the wire types of a message's fields, by their numbers.
func wireTypesOf(t *testing.T, message []byte) map[uint64]uint64 {
	t.Helper()
	fields := map[uint64]uint64{}
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		value, m := binary.Uvarint(message[n:])
		fields[tag>>3] = tag & 7
		switch tag & 7 {
		case 0:
			message = message[n+m:]
		case 1:
			message = message[n+8:]
		case 2:
			message = message[n+m+int(value):]
		default:
			t.Fatalf("wire type %d", tag&7)
		}
	}
	return fields
}

func TestWhatTheTableCannotExpressIsRefused(t *testing.T) {
	type own struct {
		Time metav1.Timestamp `json:"time" protobuf:"bytes,1,opt,name=time"`
	}
	for want, kind := range map[string]any{
		"no protobuf tag": struct {
			A string `json:"a"`
		}{},
		"no JSON": struct {
			A string `json:"-" protobuf:"bytes,1,opt,name=a"`
		}{},
		"no name in its JSON tag": struct {
			A string `protobuf:"bytes,1,opt,name=a"`
		}{},
		"unhandled option \"packed\"": struct {
			A []int32 `json:"a" protobuf:"varint,1,rep,packed,name=a"`
		}{},
		"unhandled option \"string\"": struct {
			A int32 `json:"a,string" protobuf:"varint,1,opt,name=a"`
		}{},
		"not in 1 to 255": struct {
			A string `json:"a" protobuf:"bytes,256,opt,name=a"`
		}{},
		"number 3": struct {
			A string `json:"a" protobuf:"bytes,3,opt,name=a"`
			B string `json:"b" protobuf:"bytes,3,opt,name=b"`
		}{},
		"map key": struct {
			A map[int32]string `json:"a" protobuf:"bytes,1,rep,name=a"`
		}{},
		"unhandled type *": struct {
			A map[string]*own `json:"a" protobuf:"bytes,1,rep,name=a"`
		}{},
		"unhandled type uint": struct {
			A uint64 `json:"a" protobuf:"varint,1,opt,name=a"`
		}{},
		"unhandled type float32": struct {
			A float32 `json:"a" protobuf:"fixed32,1,opt,name=a"`
		}{},
		"list in a list": struct {
			A [][]string `json:"a" protobuf:"bytes,1,rep,name=a"`
		}{},
		"pointer to a slice": struct {
			A *[]string `json:"a" protobuf:"bytes,1,rep,name=a"`
		}{},
		"inline field": struct {
			*own `json:",inline" protobuf:"bytes,1,opt,name=own"`
		}{},
		"json.Marshaler": struct {
			A metav1.GroupVersion `json:"a" protobuf:"bytes,1,opt,name=a"`
		}{},
	} {
		s := &schemaDef{byType: map[reflect.Type]*messageDef{}, ownJSON: map[reflect.Type]bool{}}
		var err error
		for _, field := range reflect.VisibleFields(reflect.TypeOf(kind)) {
			if len(field.Index) == 1 && err == nil {
				_, err = s.field(field)
			}
		}
		if want == "number 3" { // seen by the message only, which must have a name
			_, err = s.message(reflect.TypeFor[sameNumber]())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v instead of %q", err, want)
		}
	}
}

type sameNumber struct {
	A string `json:"a" protobuf:"bytes,3,opt,name=a"`
	B string `json:"b" protobuf:"bytes,3,opt,name=b"`
}

func TestNamesOfInlineFieldsMustNotMeetThoseOfTheParent(t *testing.T) {
	inner := &messageDef{typ: reflect.TypeFor[sameNumber](), fields: []fieldDef{{number: 1, name: "a"}}}
	outer := &messageDef{typ: reflect.TypeFor[sameNumber](), fields: []fieldDef{{number: 1, name: "b"}, {number: 2, flags: inline, message: inner}}}
	if names, err := outer.jsonNames(); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("names are %v, error %v", names, err)
	}
	outer.fields[0].name = "a"
	if _, err := outer.jsonNames(); err == nil {
		t.Error("two fields named a were let pass")
	}
}
