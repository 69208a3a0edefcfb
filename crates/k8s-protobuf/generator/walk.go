package main

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Flags of a field, with the names they have in the table.
const (
	repeated = 1 << iota
	mapped
	inline
	pointer
	omitEmpty
	omitZero
	listItems
)

var flagNames = []string{"REPEATED", "MAP", "INLINE", "POINTER", "OMIT_EMPTY", "OMIT_ZERO", "LIST_ITEMS"}

type messageDef struct {
	typ    reflect.Type
	fields []fieldDef // ascending by number
	index  int        // in schemaDef.messages, once all of them are known
}

func (m *messageDef) name() string { return m.typ.PkgPath() + "." + m.typ.Name() }

type fieldDef struct {
	number  int
	name    string // in JSON; "" for an inline message
	kind    string // a variant of FieldKind
	flags   int
	message *messageDef // of kind Message and the PropsOr… ones
}

// schemaDef is everything that goes into the table.
type schemaDef struct {
	kinds    []kindDef
	messages []*messageDef // sorted by name
	byType   map[reflect.Type]*messageDef
	ownJSON  map[reflect.Type]bool // the types met which marshal themselves
}

// newSchema reads the types of all kinds, and fails if one has what the table cannot express.
func newSchema(kinds []kindDef) (*schemaDef, error) {
	s := &schemaDef{kinds: kinds, byType: map[reflect.Type]*messageDef{}, ownJSON: map[reflect.Type]bool{}}
	for _, kind := range kinds {
		if _, err := s.message(kind.typ); err != nil {
			return nil, fmt.Errorf("%v: %w", kind, err)
		}
	}
	if err := s.markListItems(); err != nil {
		return nil, err
	}
	s.messages = slices.SortedFunc(maps.Values(s.byType), func(a, b *messageDef) int { return cmp.Compare(a.name(), b.name()) })
	for i, message := range s.messages {
		message.index = i
		if _, err := message.jsonNames(); err != nil {
			return nil, err
		}
		if i > 0 && message.name() == s.messages[i-1].name() {
			return nil, fmt.Errorf("two messages are named %v", message.name())
		}
	}
	return s, nil
}

// message reads a struct, once.
func (s *schemaDef) message(typ reflect.Type) (*messageDef, error) {
	if message, ok := s.byType[typ]; ok {
		return message, nil
	}
	if err := s.plainJSON(typ); err != nil {
		return nil, err
	}
	if typ.Kind() != reflect.Struct || typ.Name() == "" {
		return nil, fmt.Errorf("%v is no named struct", typ)
	}
	message := &messageDef{typ: typ}
	s.byType[typ] = message // before its fields, which may be of the same type
	for i := range typ.NumField() {
		field, err := s.field(typ.Field(i))
		if err != nil {
			return nil, fmt.Errorf("%v.%v: %w", typ, typ.Field(i).Name, err)
		}
		if field != nil {
			message.fields = append(message.fields, *field)
		}
	}
	slices.SortFunc(message.fields, func(a, b fieldDef) int { return cmp.Compare(a.number, b.number) })
	for i := 1; i < len(message.fields); i++ {
		if message.fields[i].number == message.fields[i-1].number {
			return nil, fmt.Errorf("%v: two fields have number %d", typ, message.fields[i].number)
		}
	}
	return message, nil
}

// field reads one field of a struct; nil if it is written to neither format.
func (s *schemaDef) field(field reflect.StructField) (*fieldDef, error) {
	if field.PkgPath != "" && !field.Anonymous {
		return nil, nil
	}
	number, err := protobufNumber(field)
	if err != nil {
		return nil, err
	}
	json, err := parseJSONTag(field)
	if err != nil {
		return nil, err
	}
	switch {
	case number == 0 && json == nil:
		return nil, nil
	case number == 0 && field.Type == reflect.TypeFor[metav1.TypeMeta]():
		return nil, nil // in the envelope
	case number == 0:
		return nil, fmt.Errorf("has JSON %q, but no protobuf tag", field.Tag.Get("json"))
	case json == nil:
		return nil, fmt.Errorf("has protobuf number %d, but no JSON", number)
	case json.name == "" && !field.Anonymous:
		return nil, fmt.Errorf("has no name in its JSON tag")
	}

	def := &fieldDef{number: number, name: json.name}
	for flag, set := range map[int]bool{omitEmpty: json.omitEmpty, omitZero: json.omitZero, inline: json.name == ""} {
		if set {
			def.flags |= flag
		}
	}
	typ := field.Type
	switch typ.Kind() {
	case reflect.Pointer:
		def.flags |= pointer
		typ = typ.Elem()
		if typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			return nil, fmt.Errorf("unhandled pointer to a slice or map: %v", field.Type)
		}
	case reflect.Slice:
		def.flags |= pointer
		single, err := isSingle(typ)
		if err != nil {
			return nil, err
		}
		if !single {
			def.flags |= repeated
			typ = typ.Elem()
		}
	case reflect.Map:
		def.flags |= pointer | mapped
		if err := s.mapKey(typ.Key()); err != nil {
			return nil, err
		}
		typ = typ.Elem()
	}
	if def.kind, def.message, err = s.value(typ); err != nil {
		return nil, err
	}
	if def.flags&inline != 0 && (def.kind != "Message" || def.flags != inline) {
		return nil, fmt.Errorf("unhandled inline field that is no plain struct: %v", field.Type)
	}
	return def, nil
}

// value finds the FieldKind of one value: of a field, a list's element or a map's value.
func (s *schemaDef) value(typ reflect.Type) (kind string, message *messageDef, err error) {
	if kind, ok := special[typ]; ok {
		s.ownJSON[typ] = hasOwnJSON(typ)
		if holdsProps(kind) {
			message, err = s.message(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		}
		return kind, message, err
	}
	if err := s.plainJSON(typ); err != nil {
		return "", nil, err
	}
	switch typ.Kind() {
	case reflect.String:
		kind = "Str"
	case reflect.Bool:
		kind = "Bool"
	case reflect.Int32:
		kind = "I32"
	case reflect.Int64:
		kind = "I64"
	case reflect.Float64:
		kind = "F64"
	case reflect.Struct:
		kind = "Message"
		message, err = s.message(typ)
	case reflect.Slice:
		var single bool
		kind = "StrList"
		if typ.Elem().Kind() == reflect.Uint8 {
			kind = "Bytes"
		} else if single, err = isSingle(typ); err == nil && !single {
			err = fmt.Errorf("unhandled list in a list or map: %v", typ)
		}
	default:
		err = fmt.Errorf("unhandled type %v", typ)
	}
	return kind, message, err
}

// mapKey fails unless the keys are plain strings.
func (s *schemaDef) mapKey(typ reflect.Type) error {
	if typ.Kind() != reflect.String {
		return fmt.Errorf("unhandled map key: %v", typ)
	}
	return s.plainJSON(typ)
}

// plainJSON fails if the type has JSON of its own making.
func (s *schemaDef) plainJSON(typ reflect.Type) error {
	if hasOwnJSON(typ) {
		return fmt.Errorf("%v implements json.Marshaler: handle it as a special kind", typ)
	}
	return nil
}

// markListItems flags the items of the lists: unlike other lists they are never null, as the server makes an empty one.
func (s *schemaDef) markListItems() error {
	lists := map[*messageDef]bool{}
	for _, kind := range s.kinds {
		message := s.byType[kind.typ]
		metadata := slices.IndexFunc(message.fields, func(f fieldDef) bool {
			return f.name == "metadata" && f.message.typ == reflect.TypeFor[metav1.ListMeta]()
		})
		items := slices.IndexFunc(message.fields, func(f fieldDef) bool { return f.name == "items" && f.flags&repeated != 0 })
		if metadata < 0 || items < 0 {
			continue
		}
		if !strings.HasSuffix(kind.kind, "List") || message.fields[items].flags&omitEmpty != 0 {
			return fmt.Errorf("%v is a list of an unknown form", kind)
		}
		message.fields[items].flags |= listItems
		lists[message] = true
	}
	for _, message := range s.byType {
		for _, field := range message.fields {
			if lists[field.message] {
				return fmt.Errorf("%v.%v is a list, which the table knows as top-level only", message.typ, field.name)
			}
		}
	}
	return nil
}

// jsonNames collects the names of the message's JSON object, with those of its inline messages, and fails if two are the same.
func (m *messageDef) jsonNames() ([]string, error) {
	var names []string
	for _, field := range m.fields {
		if field.flags&inline == 0 {
			names = append(names, field.name)
			continue
		}
		inner, err := field.message.jsonNames()
		if err != nil {
			return nil, err
		}
		names = append(names, inner...)
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return nil, fmt.Errorf("%v: two fields are named %q", m.typ, names[i])
		}
	}
	return names, nil
}
