package main

import (
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is the custom resource: it wants so many ConfigMaps.
type Set struct {
	v1.TypeMeta   `json:",inline"`
	v1.ObjectMeta `json:"metadata,omitempty"`
	Spec          SetSpec    `json:"spec"`
	Status        *SetStatus `json:"status,omitempty"`
}

type SetSpec struct {
	Replicas int `json:"replicas"`
}

type SetStatus struct {
	Replicas           int   `json:"replicas"`
	ObservedGeneration int64 `json:"observedGeneration"`
}

type SetList struct {
	v1.TypeMeta `json:",inline"`
	v1.ListMeta `json:"metadata,omitempty"`
	Items       []Set `json:"items"`
}

// What controller-gen would write.

func (s *Set) DeepCopyObject() runtime.Object { return s.DeepCopy() }

func (s *Set) DeepCopy() *Set {
	copied := *s
	s.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	if s.Status != nil {
		status := *s.Status
		copied.Status = &status
	}
	return &copied
}

func (l *SetList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Set, 0, len(l.Items))
	for at := range l.Items {
		copied.Items = append(copied.Items, *l.Items[at].DeepCopy())
	}
	return &copied
}

func addToScheme(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "compare.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Set{}, &SetList{})
	v1.AddToGroupVersion(scheme, version)
	return nil
}
