package main

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// perApp is how many objects have the same value of the indexed label.
const perApp = 100

// object is as small as one can be that an informer takes.
type object struct {
	metav1.ObjectMeta
	app   string
	value int64
}

func (o *object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (o *object) DeepCopyObject() runtime.Object {
	other := *o
	return &other
}

// objectOf is number `at` of `count` objects, in 20 namespaces. Objects of one app are far from each other.
func objectOf(at, count, version int) *object {
	return &object{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       fmt.Sprintf("namespace-%02d", at%20),
			Name:            fmt.Sprintf("object-%07d", at),
			UID:             types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", at, at)),
			ResourceVersion: strconv.Itoa(version),
		},
		app:   fmt.Sprintf("app-%d", at%max(1, count/perApp)),
		value: int64(version),
	}
}

func keyOf(o *object) string { return o.Namespace + "/" + o.Name }

// shuffled is 0..count in an order that is the same every time, for a prime step that `count` is no multiple of.
func shuffled(count int) []int {
	order := make([]int, count)
	for at := range order {
		order[at] = at * 7919 % count
	}
	return order
}
