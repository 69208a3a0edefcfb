package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const eventObjects = 10_000

// source lists objects from memory and watches a channel.
type source struct {
	items  []runtime.Object
	events chan watch.Event
}

type objectList struct {
	metav1.ListMeta
	Items []runtime.Object
}

func (l *objectList) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }
func (l *objectList) DeepCopyObject() runtime.Object   { return l }

func (s *source) List(metav1.ListOptions) (runtime.Object, error) {
	return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: s.items}, nil
}
func (s *source) Watch(metav1.ListOptions) (watch.Interface, error) { return s, nil }
func (s *source) IsWatchListSemanticsUnSupported() bool             { return true }
func (s *source) Stop()                                             {}
func (s *source) ResultChan() <-chan watch.Event                    { return s.events }

// events measures updates from the watch's channel to the return of the handler, in a closed loop: when the handler
// has been given all events of a batch, it lets go the next one.
func events(quick bool) {
	total := 320_000
	if quick {
		total = 32_000
	}
	for _, batch := range []int{64, 1} {
		count := total
		if batch == 1 {
			count = total / 4
		}
		cpu, allocated := updates(batch, count)
		figure(name("events", batch)+".cpu-us", cpu)
		figure(name("events", batch)+".allocations", allocated)
	}
	figure("events.idle.cpu-us", idle(total/64))
}

// pause lies between single events, so that everything has gone to sleep.
const pause = time.Millisecond

// idle measures single events that wake everybody, without what the pauses take.
func idle(count int) float64 {
	s := &source{events: make(chan watch.Event)}
	for at := range eventObjects {
		s.items = append(s.items, objectOf(at, eventObjects, 1))
	}
	var updated []watch.Event
	for at := range count {
		event := watch.Event{Type: watch.Modified, Object: objectOf(at*7919%eventObjects, eventObjects, 2+at)}
		updated = append(updated, event)
	}
	handled := make(chan struct{}, 1)
	defer run(s, func() { handled <- struct{}{} })()
	var spent [2]time.Duration
	for with := range spent {
		began := cpuTime()
		for at := range count {
			time.Sleep(pause)
			if with == 1 {
				s.events <- updated[at]
				<-handled
			}
		}
		spent[with] = cpuTime() - began
	}
	return micros(spent[1]-spent[0], count)
}

// run starts an informer with a handler of updates, waits until it has synced, and returns how to end it.
func run(s *source, onUpdate func()) context.CancelFunc {
	informer := cache.NewSharedIndexInformer(s, &object{}, 0, cache.Indexers{})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { onUpdate() }}); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go informer.RunWithContext(ctx)
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	return cancel
}

func updates(batch, count int) (cpu, allocated float64) {
	order := shuffled(eventObjects)
	s := &source{events: make(chan watch.Event, batch)}
	var generations [2][]watch.Event
	for at := range eventObjects {
		s.items = append(s.items, objectOf(at, eventObjects, 1))
	}
	for generation := range generations {
		for _, at := range order {
			updated := objectOf(at, eventObjects, 2+generation)
			generations[generation] = append(generations[generation], watch.Event{Type: watch.Modified, Object: updated})
		}
	}
	warm, sent, seen := count/10/batch*batch, 0, 0
	count = count / batch * batch
	send := func() {
		for range batch {
			s.events <- generations[sent/eventObjects%2][sent%eventObjects]
			sent++
		}
	}
	var began time.Duration
	var before uint64
	done := make(chan struct{})
	defer run(s, func() {
		seen++
		switch {
		case seen == warm:
			began, before = cpuTime(), allocations()
		case seen == warm+count:
			cpu = micros(cpuTime()-began, count)
			allocated = float64(allocations()-before) / float64(count)
			close(done)
			return
		}
		if seen == sent {
			send()
		}
	})()
	send()
	<-done
	return cpu, allocated
}
