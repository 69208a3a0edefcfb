package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// pathObject is what random paths are followed in. Members of maps are single where wildcards would have any of them first.
const pathObject = `{"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"},
"a": [{"a": 1, "b": "x"}, {"a": 2, "b": "y", "c": null}, {"a": 2.5, "b": true}, "text", [1, [2, 3]], {}],
"b": {"a": {"b": "deep"}}, "c": ["x", "y", "z"], "d": 7, "e": "<&>", "f": 2500000.0, "g": null, "h": [], "i": "",
"x.y": "dotted", "numbers": [3, 1, 2], "floats": [1.5, 2.5]}`

// writePaths writes the cells of random paths, right and wrong.
func writePaths(w io.Writer) error {
	random := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		column := apiextensionsv1.CustomResourceColumnDefinition{
			Name: "Path", Type: pick(random, "string", "string", "integer", "number", "boolean", "date"), JSONPath: randomPath(random),
		}
		// What is beyond a closing brace is another template.
		if strings.Contains(column.JSONPath, "}") {
			continue
		}
		if isRandom(column.JSONPath) {
			continue
		}
		if err := writeCustomRow(w, []apiextensionsv1.CustomResourceColumnDefinition{column}, []byte(pathObject)); err != nil {
			return fmt.Errorf("%s: %w", column.JSONPath, err)
		}
	}
	return nil
}

// isRandom is whether a path leads somewhere else each time, as Go's maps have no order.
func isRandom(path string) bool {
	lines := map[string]bool{}
	for range 20 {
		var line strings.Builder
		column := apiextensionsv1.CustomResourceColumnDefinition{Name: "Path", Type: "string", JSONPath: path}
		if err := writeCustomRow(&line, []apiextensionsv1.CustomResourceColumnDefinition{column}, []byte(pathObject)); err != nil {
			return false
		}
		lines[line.String()] = true
	}
	return len(lines) > 1
}

func pick(random *rand.Rand, of ...string) string { return of[random.IntN(len(of))] }

func randomPath(random *rand.Rand) string {
	path := ""
	for range 1 + random.IntN(4) {
		path += randomStep(random)
	}
	// A typing error.
	if random.IntN(4) == 0 {
		at := random.IntN(len(path) + 1)
		path = path[:at] + pick(random, ".", "[", "]", "'", `"`, "(", ")", "@", "-", " ", "1", ":", `\`, "*", "=", "?", "true", "range") + path[at:]
	}
	if random.IntN(8) == 0 {
		at := random.IntN(len(path))
		path = path[:at] + path[at+1:]
	}
	return path
}

func randomStep(random *rand.Rand) string {
	switch random.IntN(12) {
	case 0, 1, 2, 3:
		return "." + pick(random, "a", "a", "b", "c", "d", "e", "f", "g", "h", "i", `x\.y`, "numbers", "floats", "none", "*", "")
	case 4:
		return fmt.Sprintf("[%s]", pick(random, "*", "0", "1", "-1", "-2", "7", "-9", "", "'a'", "'b'", `'x\.y'`, "'x.y'", `"a"`, "a"))
	case 5:
		number := func() string { return pick(random, "", "", "0", "1", "2", "-1", "-3", "9") }
		if random.IntN(2) == 0 {
			return fmt.Sprintf("[%s:%s]", number(), number())
		}
		return fmt.Sprintf("[%s:%s:%s]", number(), number(), number())
	case 6:
		return fmt.Sprintf("[%s,%s]", pick(random, "0", "1", "'a'", " 2"), pick(random, "1", "-1", "'b'", "*", "9"))
	case 7:
		return ".." + pick(random, "a", "b", "c", "*", "", "[0]")
	case 8:
		return fmt.Sprintf("[?(%s)]", pick(random, "@.a", "@.b", "@.c", "@", "@[0]", "@.a[0]", "$.d", "true"))
	default:
		return fmt.Sprintf("[?(%s%s%s)]", pick(random, "@.a", "@.b", "@", "@.c", "@[1]", "1", "@..a"),
			pick(random, "==", "!=", "<", "<=", ">", ">=", " == ", "=", "=!"),
			pick(random, "1", "2", "2.5", "'x'", `"x"`, `"y"`, "true", "@.b", `"a)b"`, `"\u0078"`, "-1", "+2", "''", "range"))
	}
}
