package main

import (
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

var propsType = reflect.TypeFor[apiextensionsv1.JSONSchemaProps]()

// filler fills objects of one kind with random values, in one style after the other.
type filler struct {
	*rand.Rand
	style
	left  int                  // of the style's budget
	at    int                  // how many pointers the value being filled is away from the root
	props int                  // how many JSONSchemaProps it stands in
	arms  map[reflect.Type]int // which pointer's turn it is, by struct
}

// newFiller makes a filler whose objects depend on the seed and the kind only.
func newFiller(seed uint64, kind kindDef) *filler {
	hash := fnv.New64a()
	hash.Write([]byte(kind.String()))
	return &filler{Rand: rand.New(rand.NewPCG(seed, hash.Sum64())), arms: map[reflect.Type]int{}}
}

// fill fills an empty object.
func (f *filler) fill(object any, s style) {
	f.style, f.left = s, s.budget
	f.structure(reflect.ValueOf(object).Elem())
}

// is is true with the probability p.
func (f *filler) is(p float64) bool { return f.Float64() < p }

// has decides whether something that may be absent is there.
func (f *filler) has() bool { return f.left > 0 && f.is(f.set) }

// structure fills the fields that protobuf knows.
func (f *filler) structure(v reflect.Value) {
	typ := v.Type()
	if typ == propsType {
		f.props++
		defer func() { f.props-- }()
	}
	arm := -1
	var pointers []int
	if f.oneArm {
		for i := range typ.NumField() {
			if field := typ.Field(i).Type; field.Kind() == reflect.Pointer && isMessage(field.Elem()) && f.mayHold(field.Elem()) {
				pointers = append(pointers, i)
			}
		}
		if len(pointers) > 1 {
			arm = pointers[f.arms[typ]%len(pointers)]
			f.arms[typ]++
		}
	}
	for i := range typ.NumField() {
		number, _ := protobufNumber(typ.Field(i)) // newSchema has seen that there is no error
		switch {
		case number == 0:
		case i == arm:
			f.target(v.Field(i))
		case arm >= 0 && slices.Contains(pointers, i):
		default:
			f.value(v.Field(i))
		}
	}
}

func isMessage(typ reflect.Type) bool { return typ.Kind() == reflect.Struct && special[typ] == "" }

// value fills a value of any type, which may stay absent or zero.
func (f *filler) value(v reflect.Value) {
	if fill, ok := specialValues[v.Type()]; ok {
		if f.left--; !f.zero && f.is(f.set) {
			fill(f, v)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		f.structure(v)
	case reflect.Pointer:
		if f.has() && f.mayHold(v.Type().Elem()) && f.at < f.hops {
			f.target(v)
		}
	case reflect.Slice:
		if f.has() && f.mayHold(v.Type().Elem()) {
			f.list(v)
		}
	case reflect.Map:
		if f.has() && f.mayHold(v.Type().Elem()) {
			f.entries(v)
		}
	default:
		if f.left--; !f.zero && f.is(f.set) {
			f.plain(v)
		}
	}
}

// mayHold limits how deep JSONSchemaProps are nested.
func (f *filler) mayHold(typ reflect.Type) bool {
	return f.props <= f.nested || !(typ == propsType || holdsProps(special[typ]))
}

// target sets a pointer.
func (f *filler) target(v reflect.Value) {
	v.Set(reflect.New(v.Type().Elem()))
	f.at++
	f.value(v.Elem())
	f.at--
}

// list makes a slice: empty, or of up to three elements, now and then of many.
func (f *filler) list(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(f.bytes())
		return
	}
	length := f.length()
	v.Set(reflect.MakeSlice(v.Type(), length, length))
	for i := range length {
		f.value(v.Index(i))
	}
}

// entries makes a map. Its keys are any strings.
func (f *filler) entries(v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for range f.length() {
		key := reflect.New(v.Type().Key()).Elem()
		key.SetString(f.text())
		element := reflect.New(v.Type().Elem()).Elem()
		f.value(element)
		v.SetMapIndex(key, element)
	}
}

// length is that of a list or map which is there.
func (f *filler) length() int {
	switch {
	case f.zero:
		return f.IntN(3)
	case f.long && f.is(0.01):
		return 100 + f.IntN(200)
	case f.set == 1:
		return 1 + f.IntN(2)
	default:
		return f.IntN(4)
	}
}
