package main

import (
	"context"
	"errors"
	"flag"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// The annotation that tells when a state was sent, in nanoseconds since 1970.
	sentAnnotation = "benches.informer/sent"
	// The name of the Pod behind the last update.
	lastOfEvents = "the-last-of-the-events"
	// How long a client has before the first update, for what a list leaves to be done.
	toRest = 500 * time.Millisecond
)

// eventsLine is what the updates took, as the other clients print it: microseconds.
type eventsLine struct {
	CPUMicros int64   `json:"cpuUs"`
	Latencies []int64 `json:"latencies"`
}

// events runs an informer with a handler that takes the time. It prints the figures of the first list, then, once it
// is at rest, those of the updates that the parent has written.
func events(arguments []string) error {
	var to connection
	set := flag.NewFlagSet("events", flag.ExitOnError)
	to.flags(set)
	_ = set.Parse(arguments)

	config, err := to.config()
	if err != nil {
		return err
	}
	informer, err := newInformer(config, "protobuf", to.namespace)
	if err != nil {
		return err
	}
	handler := &eventsHandler{done: make(chan eventsLine, 1)}
	handle, err := informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	began := start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go informer.RunWithContext(ctx)
	select {
	case <-handle.HasSyncedChecker().Done():
	case <-time.After(5 * time.Minute):
		return errors.New("the informer does not sync")
	}
	line := began.stop("first")
	line.Objects = len(informer.GetStore().ListKeys())
	heapInUse()
	time.Sleep(toRest)
	line.Resident, line.ResidentPeak = resident()
	handler.begin()
	write(line)
	write(<-handler.done)
	return nil
}

// eventsHandler takes the time of each event.
type eventsHandler struct {
	sync.Mutex
	begun     bool
	cpu       time.Duration
	latencies []int64
	done      chan eventsLine
}

func (h *eventsHandler) OnAdd(object any, _ bool) { h.record(object.(*corev1.Pod)) }
func (h *eventsHandler) OnUpdate(_, object any)   { h.record(object.(*corev1.Pod)) }
func (h *eventsHandler) OnDelete(any)             {}

func (h *eventsHandler) begin() {
	h.Lock()
	defer h.Unlock()
	h.begun = true
	h.latencies = make([]int64, 0, 1<<15)
	h.cpu = cpuTime()
}

func (h *eventsHandler) record(pod *corev1.Pod) {
	if pod.Name == lastOfEvents {
		h.end()
		return
	}
	h.Lock()
	defer h.Unlock()
	if !h.begun {
		return
	}
	// What is not a time is as late as can be.
	sent, _ := strconv.ParseInt(pod.Annotations[sentAnnotation], 10, 64)
	h.latencies = append(h.latencies, (time.Now().UnixNano()-sent)/1000)
}

func (h *eventsHandler) end() {
	h.Lock()
	defer h.Unlock()
	if !h.begun {
		return
	}
	h.done <- eventsLine{
		CPUMicros: (cpuTime() - h.cpu).Microseconds(),
		Latencies: h.latencies,
	}
}
