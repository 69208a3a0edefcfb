package main

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var texts = []string{
	"a", "web-0", "app.kubernetes.io/name", "true", "null", "0", "-1", "1e3", " leading and trailing ", "two\nlines\r\n\ttab",
	`"quoted" \ and / and \u0041`, "<script>alert('&')</script>", "\x00\x01\x1f\x7f", "é", "日本語テキスト", "👩‍👩‍👧‍👦 🇪🇺 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "line\u2028para\u2029end", "\ufeffBOM", "\ufffd",
	"a\u0301 combining", "\U0010ffff", "مرحبا", "{\"json\":[1]}", "f:metadata", "aGVsbG8=", "2020-01-01T00:00:00Z",
}

var jsons = []string{
	`{}`, `[]`, `null`, `true`, `false`, `""`, `"text"`, `0`, `-1`, `1.5`, `1e3`, `-0.25E-2`, `9223372036854775807`, `-9223372036854775808`,
	`18446744073709551615`, `"<&>\u2028\u0000\n\"\\"`, `"日本語👩"`, `{"a":{"b":[1,"2",null,{"c":{}}]},"":"empty key","é":1}`, `[[],[[]],{},[{}]]`,
	" {\n\t\"spaced\" : [ 1 , 2 ]\r\n} ", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"<b>":"&"}}}`, `[0.1,1e-7,123456.789,1E+20]`,
}

var fieldSets = []string{
	`{}`, `null`, `{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{}}}}}`,
	`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{}},"v:\"<é>\"":{},"i:0":{}}}`,
}

var quantities = []string{
	"0", "1", "-1", "100m", "1500m", "1500", "1.5", "2k", "3M", "4G", "5T", "6P", "7E", "1Ki", "2Mi", "1.5Gi", "1024Ti", "8Pi", "7Ei", "-512Mi", "1u", "1n", "0.1",
	"12e6", "1E3", "1e-3", "0.000000001", "9223372036854775807", "-9223372036854775808", "99999999999999999999999", "123456789.123456789", "0Ki", "1000Ki", "0.5Ki",
}

var integers = []int64{1, -1, 2, 10, 127, 128, 255, 443, 8080, math.MaxInt32, math.MinInt32, 1<<53 + 1, math.MaxInt64, math.MinInt64, -1 << 53}

var floats = []float64{1, -1, 0.1, 1.5, -2.75, 1e20, 1e21, -1e21, 1e-6, 1e-7, 123456789, 1 << 53, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Pi, -1e300, math.Copysign(0, -1)}

var durations = []time.Duration{
	1, -1, 999, time.Microsecond, 1500 * time.Microsecond, 30 * time.Millisecond, time.Second, 90 * time.Second, time.Hour, -36*time.Hour - time.Nanosecond,
	math.MaxInt64, math.MinInt64, 1234567891,
}

func pick[T any](f *filler, from []T) T { return from[f.IntN(len(from))] }

// text is a string that is not empty, unless by chance in a style that leaves values out.
func (f *filler) text() string {
	switch {
	case f.zero || f.set < 1 && f.is(0.05):
		return ""
	case f.long && f.is(0.02):
		size := 1 + f.IntN(64<<10)
		f.left -= size / 64
		return strings.Repeat(pick(f, texts), 1+size/16)
	case f.is(0.5):
		return fmt.Sprintf("text-%d", f.IntN(1000))
	default:
		return pick(f, texts)
	}
}

func (f *filler) bytes() []byte {
	size := f.IntN(10)
	if f.zero {
		size = 0
	} else if f.long && f.is(0.3) {
		size = f.IntN(64 << 10)
		f.left -= size / 64
	}
	bytes := make([]byte, size)
	for i := range bytes {
		bytes[i] = byte(f.Uint32())
	}
	return bytes
}

// plain sets a string, bool or number to something that is not zero.
func (f *filler) plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		n := int32(pick(f, integers))
		if f.is(0.3) {
			n = int32(f.Uint32())
		}
		v.SetInt(int64(n))
	case reflect.Int64:
		n := pick(f, integers)
		if f.is(0.3) {
			n = int64(f.Uint64())
		}
		v.SetInt(n)
	case reflect.Float64:
		v.SetFloat(pick(f, floats))
	default:
		panic(fmt.Sprintf("newSchema lets no %v pass", v.Type()))
	}
}

// moment is a time between the years 1 and 9999, which is all that RFC 3339 can say.
func (f *filler) moment() time.Time {
	seconds := []int64{0, 1, -1, 1_600_000_000, 951_782_400, -62135596800 + 1, 253402300799, -1_000_000_000, int64(f.IntN(2_000_000_000))}
	nanoseconds := []int64{0, 0, 1, 999, 1000, 123_456_789, 999_999_999, 500_000_000}
	return time.Unix(pick(f, seconds), pick(f, nanoseconds))
}

// specialValues set a special kind to something that is not zero.
var specialValues map[reflect.Type]func(*filler, reflect.Value)

// setter adapts a function that makes a value.
func setter[T any](make func(*filler) T) func(*filler, reflect.Value) {
	return func(f *filler, v reflect.Value) { v.Set(reflect.ValueOf(make(f))) }
}

func init() { // not a plain variable, as its functions fill values themselves
	specialValues = map[reflect.Type]func(*filler, reflect.Value){
		reflect.TypeFor[metav1.Time]():      setter(func(f *filler) metav1.Time { return metav1.Time{Time: f.moment()} }),
		reflect.TypeFor[metav1.MicroTime](): setter(func(f *filler) metav1.MicroTime { return metav1.MicroTime{Time: f.moment()} }),
		reflect.TypeFor[metav1.Duration]():  setter(func(f *filler) metav1.Duration { return metav1.Duration{Duration: pick(f, durations)} }),
		reflect.TypeFor[resource.Quantity](): setter(func(f *filler) resource.Quantity {
			if f.is(0.3) {
				return *resource.NewScaledQuantity(pick(f, integers), pick(f, []resource.Scale{resource.Nano, resource.Milli, 0, resource.Kilo}))
			}
			return resource.MustParse(pick(f, quantities))
		}),
		reflect.TypeFor[intstr.IntOrString](): setter((*filler).intOrString),
		// Raw that is empty but not nil has no JSON in Go.
		reflect.TypeFor[runtime.RawExtension](): setter(func(f *filler) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(pick(f, jsons))} }),
		reflect.TypeFor[metav1.FieldsV1]():      setter(func(f *filler) metav1.FieldsV1 { return *metav1.NewFieldsV1(pick(f, fieldSets)) }),
		reflect.TypeFor[apiextensionsv1.JSON](): setter(func(f *filler) apiextensionsv1.JSON {
			if f.is(0.1) {
				return apiextensionsv1.JSON{Raw: []byte{}}
			}
			return apiextensionsv1.JSON{Raw: []byte(pick(f, jsons))}
		}),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray](): setter(func(f *filler) (v apiextensionsv1.JSONSchemaPropsOrArray) {
			f.fillProps(&v.Schema, &v.JSONSchemas)
			return v
		}),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool](): setter(func(f *filler) (v apiextensionsv1.JSONSchemaPropsOrBool) {
			v.Allows = f.is(0.6)
			f.fillProps(&v.Schema, nil)
			return v
		}),
		reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): setter(func(f *filler) (v apiextensionsv1.JSONSchemaPropsOrStringArray) {
			f.fillProps(&v.Schema, &v.Property)
			return v
		}),
	}
}

// intOrString has one arm, or both, as Go does not mind.
func (f *filler) intOrString() intstr.IntOrString {
	v := intstr.IntOrString{Type: intstr.Type(f.IntN(2))}
	if v.Type == intstr.Int || f.is(0.1) {
		v.IntVal = int32(pick(f, integers))
	}
	if v.Type == intstr.String || f.is(0.1) {
		v.StrVal = pick(f, []string{"50%", "http", "8080", "", f.text()})
	}
	return v
}

// fillProps sets a schema, the list that may stand in its place, or both, in turn; neither where schemas are nested too deep.
func (f *filler) fillProps(schema **apiextensionsv1.JSONSchemaProps, list any) {
	typ := reflect.TypeOf(list)
	turn := f.arms[typ]
	f.arms[typ]++
	if f.mayHold(propsType) && turn%3 != 1 {
		f.target(reflect.ValueOf(schema).Elem())
	}
	if turn%3 != 0 && list != nil && f.mayHold(typ.Elem().Elem()) {
		f.list(reflect.ValueOf(list).Elem())
	}
}
