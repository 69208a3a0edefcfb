package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// syncPods syncs an informer of Pods without a handler, and tells what it took.
func syncPods(arguments []string) error {
	var to connection
	set := flag.NewFlagSet("sync", flag.ExitOnError)
	to.flags(set)
	wire := set.String("wire", "protobuf", "`protobuf` or json")
	_ = set.Parse(arguments)

	config, err := to.config()
	if err != nil {
		return err
	}
	informer, err := newInformer(config, *wire, to.namespace)
	if err != nil {
		return err
	}
	empty := heapInUse()
	began := start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go informer.RunWithContext(ctx)
	select {
	case <-informer.HasSyncedChecker().Done():
	case <-time.After(5 * time.Minute):
		return errors.New("the informer does not sync")
	}
	line := began.stop("first")
	line.Objects = len(informer.GetStore().ListKeys())
	line.Heap = &heapLine{Settled: max(heapInUse(), empty) - empty}
	runtime.KeepAlive(informer)
	debug.FreeOSMemory()
	line.Resident, line.ResidentPeak = resident()
	write(line)
	return nil
}

// newInformer makes an informer that drops managedFields, as ours does.
func newInformer(config *rest.Config, wire, namespace string) (cache.SharedIndexInformer, error) {
	contentType, err := contentType(wire)
	if err != nil {
		return nil, err
	}
	config.ContentType = contentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Pods().Informer()
	return informer, informer.SetTransform(dropManagedFields)
}

func contentType(wire string) (string, error) {
	switch wire {
	case "protobuf":
		return "application/vnd.kubernetes.protobuf", nil
	case "json":
		return "application/json", nil
	default:
		return "", fmt.Errorf("unknown wire format %q", wire)
	}
}

func dropManagedFields(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	accessor.SetManagedFields(nil)
	return object, nil
}
