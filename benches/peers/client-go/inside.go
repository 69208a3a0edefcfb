package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// inside measures reads, handlers and relists without a server. Each figure is a line: a name and a number. Objects
// come decoded.
func inside(arguments []string) error {
	parts := map[string]func(quick bool) error{"by-label": byLabel, "handlers": handlers, "relist": relist}
	if len(arguments) == 0 || parts[arguments[0]] == nil {
		return fmt.Errorf("which part? by-label, handlers or relist")
	}
	return parts[arguments[0]](slices.Contains(arguments[1:], "--quick"))
}

func figure(name string, value float64) { fmt.Printf("%s %g\n", name, value) }

// perApp is how many objects have the same value of the label app.
const perApp = 100

// configMap is number `at` of `count`, in 20 namespaces. Objects of one app are far from each other.
func configMap(at, count, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: v1.ObjectMeta{
		Namespace:       fmt.Sprintf("namespace-%02d", at%20),
		Name:            fmt.Sprintf("object-%07d", at),
		UID:             types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", at, at)),
		ResourceVersion: strconv.Itoa(version),
		Labels:          map[string]string{"app": fmt.Sprintf("app-%d", at%max(1, count/perApp))},
	}}
}

// byLabel lists a hundred objects of a million through a lister with a selector.
func byLabel(quick bool) error {
	count, rounds := 1_000_000, 5
	if quick {
		count = 10_000
	}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for at := range count {
		if err := indexer.Add(configMap(at, count, 1)); err != nil {
			return err
		}
	}
	lister := corelisters.NewConfigMapLister(indexer)
	began := cpuTime()
	for round := range rounds {
		app := fmt.Sprintf("app-%d", round*7919%(count/perApp))
		found, err := lister.List(labels.SelectorFromSet(labels.Set{"app": app}))
		if err != nil || len(found) != perApp {
			return fmt.Errorf("the lister found %d objects: %w", len(found), err)
		}
	}
	figure("by-label.us", micros(cpuTime()-began, rounds))
	return nil
}

// handlers measures updates from the watch's channel until a hundred handlers have returned, in a closed loop: when all
// were given all events of a batch, the next one is sent.
func handlers(quick bool) error {
	total := 16_000
	if quick {
		total = 3_200
	}
	for _, loop := range []struct{ batch, events int }{{64, total}, {1, total / 8}} {
		spent, err := updates(loop.batch, loop.events)
		if err != nil {
			return err
		}
		figure(fmt.Sprintf("handlers.%d.us", loop.batch), spent)
	}
	return nil
}

func updates(batch, events int) (micro float64, err error) {
	const objects, count = 10_000, 100
	s := newSource(objects, batch)
	batches := events / batch
	warm := batches/8 + 1
	changed := make([]watch.Event, (batches+warm)*batch)
	for at := range changed {
		changed[at] = watch.Event{Type: watch.Modified, Object: configMap(at*7919%objects, objects, 100+at)}
	}
	send := func(number int) {
		for _, event := range changed[number*batch : (number+1)*batch] {
			s.events <- event
		}
	}
	var working, done atomic.Int64
	working.Store(count)
	ended := make(chan time.Duration)
	var began time.Duration
	finished := func() {
		if working.Add(-1) > 0 {
			return
		}
		working.Store(count)
		switch number := int(done.Add(1)); number {
		case batches + warm:
			ended <- cpuTime() - began
		case warm:
			began = cpuTime()
			send(number)
		default:
			send(number)
		}
	}
	informer := cache.NewSharedIndexInformer(s, &corev1.ConfigMap{}, 0, cache.Indexers{})
	for range count {
		seen := 0
		onUpdate := func(_, _ any) {
			if seen++; seen%batch == 0 {
				finished()
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: onUpdate}); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go informer.RunWithContext(ctx)
	<-informer.HasSyncedChecker().Done()
	send(0)
	return micros(<-ended, batches*batch), nil
}

// relist counts the calls of a handler in a relist in which nothing has changed.
func relist(bool) error {
	const objects = 20_000
	s := newSource(objects, 1)
	informer := cache.NewSharedIndexInformer(s, &corev1.ConfigMap{}, 0, cache.Indexers{})
	calls := 0
	deleted := make(chan struct{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, _ any) { calls++ },
		DeleteFunc: func(any) { close(deleted) },
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go informer.RunWithContext(ctx)
	<-informer.HasSyncedChecker().Done()
	s.events <- watch.Event{Type: watch.Error, Object: &v1.Status{Status: v1.StatusFailure, Reason: v1.StatusReasonExpired, Code: 410}}
	for s.lists.Load() < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	// Behind all that the relist has to say.
	s.events <- watch.Event{Type: watch.Deleted, Object: configMap(0, objects, 30)}
	<-deleted
	figure("relist.calls", float64(calls))
	return nil
}

// source lists objects from memory and watches a channel.
type source struct {
	items  []corev1.ConfigMap
	lists  atomic.Int64
	events chan watch.Event
}

func newSource(objects, batch int) *source {
	s := &source{events: make(chan watch.Event, batch)}
	for at := range objects {
		s.items = append(s.items, *configMap(at, objects, 1))
	}
	return s
}

func (s *source) List(v1.ListOptions) (runtime.Object, error) {
	version := strconv.FormatInt(10*s.lists.Add(1), 10)
	return &corev1.ConfigMapList{ListMeta: v1.ListMeta{ResourceVersion: version}, Items: s.items}, nil
}
func (s *source) Watch(v1.ListOptions) (watch.Interface, error) { return s, nil }
func (s *source) IsWatchListSemanticsUnSupported() bool         { return true }
func (s *source) Stop()                                         {}
func (s *source) ResultChan() <-chan watch.Event                { return s.events }
