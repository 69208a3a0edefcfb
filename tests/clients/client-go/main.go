// Command client-go runs client-go's shared informers as they come against a server: typed, dynamic and of metadata
// only, of Pods and of a custom resource. It prints what they tell in lines of JSON on stdout, and ends by itself once
// the object called --last has been deleted everywhere; with --histories once stdin ends. With --elect it is a candidate
// of a leader election instead.
//
//	client-go --kubeconfig FILE --elect LEASE --namespace NAME --identity NAME
//	client-go --server URL --histories [--wire protobuf|json] [--initial stream|list] SCOPE...
//	client-go --server URL --namespace NAME --last NAME --custom GROUP/VERSION/RESOURCE [--wire protobuf|json] [--initial stream|list]
//
// In place of --server there may be --kubeconfig.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const patience = time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}

func run() error {
	server := flag.String("server", "", "URL of a server that wants neither TLS nor a token")
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig, whose current context is used")
	namespace := flag.String("namespace", "", "namespace of the informers, or of the Lease")
	last := flag.String("last", "", "name of the object whose deletion ends this")
	wire := flag.String("wire", "protobuf", "`protobuf` or json")
	initial := flag.String("initial", "stream", "`stream` or list")
	custom := flag.String("custom", "", "the custom resource, as GROUP/VERSION/RESOURCE")
	follows := flag.Bool("histories", false, "follow Pods until stdin ends, see histories; the arguments are scopes")
	lease := flag.String("elect", "", "take part in the leader election of the Lease of this name, until stdin ends")
	identity := flag.String("identity", "", "the candidate's name")
	flag.Parse()

	// How users switch it. The environment is read at the first use of a feature gate.
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", fmt.Sprint(*initial == "stream")); err != nil {
		return err
	}
	seen := &answers{types: map[string]int{}}
	config := &rest.Config{Host: *server}
	if *kubeconfig != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", *kubeconfig); err != nil {
			return err
		}
	}
	if *lease != "" {
		return elect(config, *namespace, *lease, *identity)
	}
	if *follows {
		return histories(config, *wire, flag.Args())
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &recording{next, seen} })
	parts := strings.Split(*custom, "/")
	if len(parts) != 3 {
		return fmt.Errorf("--custom %q is not GROUP/VERSION/RESOURCE", *custom)
	}
	resource := schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
	named, err := build(config, *wire, *namespace, resource)
	if err != nil {
		return err
	}
	return follow(named, *last, seen)
}

// namedInformer is one of those that run.
type namedInformer struct {
	name     string
	informer cache.SharedIndexInformer
}

func build(config *rest.Config, wire, namespace string, custom schema.GroupVersionResource) ([]namedInformer, error) {
	ofTyped, err := typedConfig(config, wire)
	if err != nil {
		return nil, err
	}
	typed, err := kubernetes.NewForConfig(ofTyped)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	typedFactory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace))
	dynamicFactory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(dynamicClient, 0, namespace, nil)
	metadataFactory := metadatainformer.NewFilteredSharedInformerFactory(metadataClient, 0, namespace, nil)
	return []namedInformer{
		{"typed pods", typedFactory.Core().V1().Pods().Informer()},
		{"dynamic pods", dynamicFactory.ForResource(pods).Informer()},
		{"metadata pods", metadataFactory.ForResource(pods).Informer()},
		{"dynamic custom", dynamicFactory.ForResource(custom).Informer()},
		{"metadata custom", metadataFactory.ForResource(custom).Informer()},
	}, nil
}

// typedConfig is the configuration of a typed client in a wire format.
func typedConfig(config *rest.Config, wire string) (*rest.Config, error) {
	typed := rest.CopyConfig(config)
	switch wire {
	case "protobuf":
		typed.ContentType = "application/vnd.kubernetes.protobuf"
		typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	case "json":
		typed.ContentType = "application/json"
	default:
		return nil, fmt.Errorf("unknown wire format %q", wire)
	}
	return typed, nil
}

func follow(named []namedInformer, last string, seen *answers) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ended sync.WaitGroup
	for _, it := range named {
		ended.Add(1)
		handler := &printer{informer: it.name, last: last, ended: sync.OnceFunc(ended.Done)}
		if _, err := it.informer.AddEventHandler(handler); err != nil {
			return err
		}
		go it.informer.RunWithContext(ctx)
	}
	for _, it := range named {
		if !cache.WaitForCacheSync(ctx.Done(), it.informer.HasSynced) {
			return fmt.Errorf("%s does not sync", it.name)
		}
	}
	write(line{Line: "synced"})
	all := make(chan struct{})
	go func() { ended.Wait(); close(all) }()
	select {
	case <-all:
	case <-ctx.Done():
		return errors.New("not all informers were told of the last deletion")
	}
	for _, it := range named {
		for _, object := range it.informer.GetStore().List() {
			if err := tell("object", it.name, object); err != nil {
				return err
			}
		}
	}
	seen.tell()
	write(line{Line: "end"})
	return nil
}

// line is one line on stdout.
type line struct {
	Line     string          `json:"line"`
	Informer string          `json:"informer,omitempty"`
	Key      string          `json:"key,omitempty"`
	UID      string          `json:"uid,omitempty"`
	Version  string          `json:"version,omitempty"`
	Object   json.RawMessage `json:"object,omitempty"`
	// Of `leads`, in microseconds.
	At int64 `json:"at,omitempty"`
	// Of `answers`.
	Type  string `json:"type,omitempty"`
	Count int    `json:"count,omitempty"`
}

// printer is a handler that prints its calls.
type printer struct {
	informer, last string
	ended          func()
}

func (p *printer) OnAdd(object any, initial bool) {
	if initial {
		p.tell("initial", object)
	} else {
		p.tell("add", object)
	}
}

func (p *printer) OnUpdate(_, object any) { p.tell("update", object) }

func (p *printer) OnDelete(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		p.tell("delete-unknown", unknown.Obj)
		object = unknown.Obj
	} else {
		p.tell("delete", object)
	}
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetName() == p.last {
		p.ended()
	}
}

func (p *printer) tell(what string, object any) {
	if err := tell(what, p.informer, object); err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
	}
}

// tell prints an object as its type writes it, without managedFields.
func tell(what, informer string, object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	if text, err = json.Marshal(fields); err != nil {
		return err
	}
	write(line{
		Line: what, Informer: informer, Key: accessor.GetNamespace() + "/" + accessor.GetName(),
		UID: string(accessor.GetUID()), Version: accessor.GetResourceVersion(), Object: text,
	})
	return nil
}

// answers counts the answers by what was asked and the type that came.
type answers struct {
	sync.Mutex
	types map[string]int
}

type recording struct {
	next http.RoundTripper
	seen *answers
}

func (r *recording) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	query, what := request.URL.Query(), "list"
	switch {
	case query.Get("sendInitialEvents") == "true":
		what = "stream"
	case query.Has("watch"):
		what = "watch"
	}
	r.seen.Lock()
	defer r.seen.Unlock()
	r.seen.types[fmt.Sprintf("%s %d %s", what, response.StatusCode, response.Header.Get("Content-Type"))]++
	return response, nil
}

func (a *answers) tell() {
	a.Lock()
	defer a.Unlock()
	for kind, count := range a.types {
		write(line{Line: "answers", Type: kind, Count: count})
	}
}

var stdout sync.Mutex

func write(it line) {
	text, err := json.Marshal(it)
	if err != nil {
		panic(err)
	}
	stdout.Lock()
	defer stdout.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n'))
}
