package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	discoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// kindDef is a kind as it is named in an object, and the Go type behind it.
type kindDef struct {
	apiVersion, kind string
	typ              reflect.Type
}

func (k kindDef) String() string { return k.apiVersion + "/" + k.kind }

// newObject makes an empty object of the kind, with its type set as the server does.
func (k kindDef) newObject() runtime.Object {
	object := reflect.New(k.typ).Interface().(runtime.Object)
	k.setType(object)
	return object
}

// setType names the kind in the object's TypeMeta; a WatchEvent has none.
func (k kindDef) setType(object runtime.Object) {
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(k.apiVersion, k.kind))
}

// sources are the groups whose kinds are in the table. Everything the API server itself stores or answers with is in client-go's
// scheme, but for those below it.
var sources = []func(*runtime.Scheme) error{
	clientgo.AddToScheme,
	apiextensionsv1.AddToScheme,
	apiregistrationv1.AddToScheme,
	metricsv1beta1.AddToScheme,
	discoveryv2.AddToScheme,
	discoveryv2beta1.AddToScheme,
	metav1.AddMetaToScheme,
	metav1beta1.AddMetaToScheme,
	// Only sent to webhooks, but in the test data of k8s.io/api.
	admissionv1.AddToScheme,
	admissionv1beta1.AddToScheme,
	imagepolicyv1alpha1.AddToScheme,
}

// Each group registers copies of what k8s.io/apimachinery defines, such as ListOptions. They are meaningful in these only.
var metaGroups = []schema.GroupVersion{{Version: "v1"}, metav1.SchemeGroupVersion, metav1beta1.SchemeGroupVersion}

// jsonOnly are kinds which the API server never writes as protobuf.
var jsonOnly = []reflect.Type{reflect.TypeFor[metav1.Table](), reflect.TypeFor[metav1.TableOptions]()}

// kinds lists the kinds of the table, sorted by API version and kind.
func kinds() ([]kindDef, error) {
	scheme := runtime.NewScheme()
	for _, add := range sources {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	var defs []kindDef
	for gvk, typ := range scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || slices.Contains(jsonOnly, typ) {
			continue
		}
		if isMeta(typ) && !slices.Contains(metaGroups, gvk.GroupVersion()) {
			continue
		}
		if !reflect.PointerTo(typ).Implements(reflect.TypeFor[runtime.ProtobufMarshaller]()) {
			return nil, fmt.Errorf("%v has no protobuf encoding: add %v to jsonOnly if the server answers with JSON only", gvk, typ)
		}
		defs = append(defs, kindDef{gvk.GroupVersion().String(), gvk.Kind, typ})
	}
	slices.SortFunc(defs, func(a, b kindDef) int {
		return cmp.Or(cmp.Compare(a.apiVersion, b.apiVersion), cmp.Compare(a.kind, b.kind))
	})
	return defs, nil
}

func isMeta(typ reflect.Type) bool {
	return typ.PkgPath() == reflect.TypeFor[metav1.Status]().PkgPath() ||
		typ.PkgPath() == reflect.TypeFor[metav1beta1.PartialObjectMetadataList]().PkgPath()
}
