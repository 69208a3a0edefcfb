package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	apiservices "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"

	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install"
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/extensions/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
)

func init() { apiregistration.Install(legacyscheme.Scheme) }

// plain are kinds with a printer that kube-apiserver does not use: their storage has the default table of name and creation time.
var plain = []schema.GroupKind{{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}}

// generator is every printer that kube-apiserver registers.
var generator = printers.NewTableGenerator().With(internalversion.AddHandlers)

// printed are the internal types that have a printer.
var printed = func() recorder {
	types := recorder{}
	internalversion.AddHandlers(types)
	return types
}()

// recorder takes down for which types printers are registered.
type recorder map[reflect.Type][]metav1.TableColumnDefinition

func (r recorder) TableHandler(columns []metav1.TableColumnDefinition, print any) error {
	r[reflect.TypeOf(print).In(0)] = columns
	return nil
}

// internalOf is what kube-apiserver has in memory of an object that it reads.
func internalOf(object runtime.Object) (runtime.Object, error) {
	kind := object.GetObjectKind().GroupVersionKind()
	legacyscheme.Scheme.Default(object)
	internal, err := legacyscheme.Scheme.ConvertToVersion(object, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	if service, ok := internal.(*core.Service); ok && len(service.Spec.ClusterIPs) == 0 && service.Spec.ClusterIP != "" {
		// What the storage of Services does.
		service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	}
	return internal, err
}

// tableOf is the table that kube-apiserver makes of an object that it has in memory.
func tableOf(kind schema.GroupKind, internal runtime.Object) (*metav1.Table, error) {
	return convertorOf(kind, internal).ConvertToTable(context.Background(), internal, nil)
}

func convertorOf(kind schema.GroupKind, internal runtime.Object) rest.TableConvertor {
	if kind.Group == "apiregistration.k8s.io" {
		return &apiservices.REST{}
	}
	if _, ok := printed[reflect.TypeOf(internal)]; ok && !slices.Contains(plain, kind) {
		return generated{}
	}
	return rest.NewDefaultTableConvertor(schema.GroupResource{Group: kind.Group, Resource: kind.Kind})
}

// generated is what kube-apiserver's storages have.
type generated struct{}

func (generated) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	return generator.GenerateTable(object, printers.GenerateOptions{Wide: true})
}

// kinds are those of objects that a table can be made of, of each version that there is, in order.
func kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind, typ := range legacyscheme.Scheme.AllKnownTypes() {
		_, hasMetadata := reflect.New(typ).Interface().(metav1.Object)
		_, isList := reflect.New(typ).Interface().(metav1.ListInterface)
		if kind.Version == runtime.APIVersionInternal || !hasMetadata || isList || strings.HasSuffix(kind.Kind, "List") {
			continue
		}
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

func newObject(kind schema.GroupVersionKind) (runtime.Object, error) {
	object, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", kind, err)
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	return object, nil
}
