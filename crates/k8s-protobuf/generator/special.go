package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// special are the messages whose JSON is not an object of their fields, with the FieldKind that stands for them.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                  "Time",
	reflect.TypeFor[metav1.MicroTime]():                             "MicroTime",
	reflect.TypeFor[metav1.Duration]():                              "Duration",
	reflect.TypeFor[resource.Quantity]():                            "Quantity",
	reflect.TypeFor[intstr.IntOrString]():                           "IntOrString",
	reflect.TypeFor[runtime.RawExtension]():                         "RawJson",
	reflect.TypeFor[metav1.FieldsV1]():                              "RawJson",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "RawJson",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "PropsOrArray",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "PropsOrBool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "PropsOrStringArray",
}

// holdsProps tells whether the FieldKind is one that holds a JSONSchemaProps.
func holdsProps(kind string) bool {
	return kind == "PropsOrArray" || kind == "PropsOrBool" || kind == "PropsOrStringArray"
}

// hasOwnJSON tells whether the type says itself what its JSON is, so that its fields do not.
func hasOwnJSON(typ reflect.Type) bool {
	pointer := reflect.PointerTo(typ)
	return pointer.Implements(reflect.TypeFor[json.Marshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// isSingle tells whether the slice is one value in protobuf: bytes, or a list of strings with a message of its own, such as
// metav1.Verbs, which is `repeated string items = 1`. An error says that it is a message of some other form.
func isSingle(slice reflect.Type) (bool, error) {
	type marshaler interface{ Marshal() ([]byte, error) }
	if slice.Elem().Kind() == reflect.Uint8 {
		return true, nil
	}
	if !reflect.PointerTo(slice).Implements(reflect.TypeFor[marshaler]()) {
		return false, nil
	}
	if slice.Elem().Kind() != reflect.String {
		return false, fmt.Errorf("unhandled message of a list: %v", slice)
	}
	// Go's tags do not say how it is written, so see.
	list := reflect.New(slice)
	list.Elem().Set(reflect.MakeSlice(slice, 2, 2))
	list.Elem().Index(1).SetString("b")
	written, err := list.Interface().(marshaler).Marshal()
	if want := []byte("\x0a\x00\x0a\x01b"); err != nil || !bytes.Equal(written, want) {
		return false, fmt.Errorf("%v is not written as `repeated string items = 1`, but % x (%v)", slice, written, err)
	}
	return true, nil
}
