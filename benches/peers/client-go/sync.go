package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// syncPods syncs an informer of Pods without a handler, and tells what it took.
func syncPods(arguments []string) error {
	var to connection
	set := flag.NewFlagSet("sync", flag.ExitOnError)
	to.flags(set)
	kind := set.String("kind", "typed", "`typed`, metadata or dynamic")
	wire := set.String("wire", "protobuf", "`protobuf` or json, for typed; metadata is protobuf and dynamic is json, as they come")
	strip := set.Bool("strip", false, "drop managedFields in a transform")
	_ = set.Parse(arguments)

	config, err := to.config()
	if err != nil {
		return err
	}
	informer, err := newInformer(config, *kind, *wire, to.namespace)
	if err != nil {
		return err
	}
	if *strip {
		if err := informer.SetTransform(dropManagedFields); err != nil {
			return err
		}
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

func newInformer(config *rest.Config, kind, wire, namespace string) (cache.SharedIndexInformer, error) {
	switch kind {
	case "typed":
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
		return factory.Core().V1().Pods().Informer(), nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewFilteredMetadataInformer(client, pods, namespace, 0, cache.Indexers{}, nil).Informer(), nil
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicInformer(client, pods, namespace, 0, cache.Indexers{}, nil).Informer(), nil
	default:
		return nil, fmt.Errorf("unknown kind %q", kind)
	}
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
