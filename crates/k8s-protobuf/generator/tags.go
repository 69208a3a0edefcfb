package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// protobufNumber reads the field's number in `protobuf:"bytes,1,opt,name=metadata"`; 0 if the field is not written.
//
// The wire type and the label follow from the Go type. What the tag says of them is written by hand, is not used by Kubernetes'
// generator, and is wrong in places, such as ListMeta.RemainingItemCount and AdmissionResponse.AuditAnnotations.
func protobufNumber(field reflect.StructField) (int, error) {
	text := field.Tag.Get("protobuf")
	if text == "" || text == "-" {
		return 0, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) < 3 {
		return 0, fmt.Errorf("protobuf tag %q has less than three parts", text)
	}
	number, err := strconv.ParseUint(parts[1], 10, 8)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("protobuf tag %q: field number is not in 1 to 255, which the table's u8 holds", text)
	}
	for _, option := range parts[3:] {
		// Names and Go casts say nothing about the bytes; "packed" or "def=" would.
		name, _, _ := strings.Cut(option, "=")
		switch name {
		case "name", "casttype", "castkey", "castvalue":
		default:
			return 0, fmt.Errorf("protobuf tag %q: unhandled option %q", text, option)
		}
	}
	return int(number), nil
}

// jsonTag is what a `json:"metadata,omitempty"` says.
type jsonTag struct {
	name                string // "" for a field without a name in its tag
	omitEmpty, omitZero bool
}

// parseJSONTag reads a field's JSON tag. The tag is nil if the field is not written.
func parseJSONTag(field reflect.StructField) (*jsonTag, error) {
	text := field.Tag.Get("json")
	if text == "-" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	tag := &jsonTag{name: parts[0]}
	for _, option := range parts[1:] {
		switch option {
		case "omitempty":
			tag.omitEmpty = true
		case "omitzero":
			tag.omitZero = true
		case "inline", "": // encoding/json knows neither
		default:
			return nil, fmt.Errorf("JSON tag %q: unhandled option %q", text, option)
		}
	}
	return tag, nil
}
