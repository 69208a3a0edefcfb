package main

import "math"

// style is how one object is filled.
type style struct {
	name string
	// How likely anything that may be absent is there, and a plain value is not zero.
	set float64
	// What is there is zero: 0 behind a pointer, an empty list, a list of one empty string.
	zero bool
	// Pointers are set that are less than so many pointers away from the object's root.
	hops int
	// Of a struct's pointers to structs, which often are the arms of a union, one is set: the next at each struct of that type.
	oneArm bool
	// Now and then a list or a string is long.
	long bool
	// So often a JSONSchemaProps may stand within another.
	nested int
	// So many values the object may have, roughly. Then nothing more is set that may be absent.
	budget int
}

const anyHops = math.MaxInt

// styles are taken in turn, and begin again after the last. The first eight bring every pointer to be nil and to be set.
var styles = []style{
	{name: "nil"},
	{name: "full", set: 1, hops: anyHops, nested: 1, budget: 20_000},
	{name: "zeros", zero: true, set: 1, hops: anyHops, nested: 1, budget: 5_000},
	{name: "no pointers", set: 1, hops: 0, nested: 1, budget: 20_000},
	{name: "one pointer", set: 1, hops: 1, nested: 1, budget: 20_000},
	{name: "two pointers", set: 1, hops: 2, nested: 1, budget: 20_000},
	{name: "three pointers", set: 1, hops: 3, nested: 1, budget: 20_000},
	{name: "four pointers", set: 1, hops: 4, nested: 1, budget: 20_000},
	{name: "one arm", set: 0.8, hops: anyHops, oneArm: true, nested: 2, budget: 5_000},
	{name: "sparse", set: 0.15, hops: anyHops, nested: 3, budget: 3_000},
	{name: "long", set: 0.6, hops: anyHops, long: true, nested: 2, budget: 8_000},
	{name: "sparse zeros", zero: true, set: 0.4, hops: anyHops, nested: 2, budget: 3_000},
	{name: "half", set: 0.5, hops: anyHops, nested: 2, budget: 3_000},
	{name: "another arm", set: 0.6, hops: anyHops, oneArm: true, nested: 3, budget: 3_000},
}
