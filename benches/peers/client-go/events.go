package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// The annotation that tells when a state was sent, in nanoseconds since 1970.
	sentAnnotation = "benches.informer/sent"
	// The name of the Pod behind the last update of a burst.
	lastOfEvents = "the-last-of-the-events"
	// How long a client has before its first burst, for what a list leaves to be done.
	toRest = 500 * time.Millisecond
)

// eventsLine is what a burst of updates took, as the other clients print it: microseconds. Latencies are null for a
// drain.
type eventsLine struct {
	CPUMicros   int64   `json:"cpuUs"`
	WallMicros  int64   `json:"wallUs"`
	Latencies   []int64 `json:"latencies"`
	Allocations *int    `json:"allocations"`
}

// events runs an informer with a handler that takes the time, or a watch whose bytes it throws away. It prints the
// figures of the first list, then, once it is at rest, those of each burst that somebody else writes.
func events(arguments []string) error {
	var to connection
	set := flag.NewFlagSet("events", flag.ExitOnError)
	to.flags(set)
	wire := set.String("wire", "protobuf", "`protobuf` or json")
	bursts := set.Int("bursts", 1, "end after so many bursts")
	drains := set.Bool("drain", false, "receive what an informer does, and throw it away")
	_ = set.Parse(arguments)

	if *drains {
		return drainEvents(&to, *wire, *bursts)
	}
	config, err := to.config()
	if err != nil {
		return err
	}
	informer, err := newInformer(config, "typed", *wire, to.namespace)
	if err != nil {
		return err
	}
	handler := &eventsHandler{done: make(chan eventsLine, *bursts)}
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
	for range *bursts {
		line := <-handler.done
		// Whoever reads the line may be faster than what comes after it.
		handler.begin()
		write(line)
	}
	return nil
}

// eventsHandler takes the time of each event.
type eventsHandler struct {
	sync.Mutex
	begun     bool
	cpu       time.Duration
	first     time.Time
	latencies []int64
	done      chan eventsLine
}

func (h *eventsHandler) OnAdd(object any, _ bool) { h.record(object.(*corev1.Pod)) }
func (h *eventsHandler) OnUpdate(_, object any)   { h.record(object.(*corev1.Pod)) }
func (h *eventsHandler) OnDelete(any)             {}

func (h *eventsHandler) begin() {
	h.Lock()
	defer h.Unlock()
	h.begun, h.first = true, time.Time{}
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
	if h.first.IsZero() {
		h.first = time.Now()
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
		CPUMicros:  (cpuTime() - h.cpu).Microseconds(),
		WallMicros: time.Since(h.first).Microseconds(),
		Latencies:  h.latencies,
	}
}

// drainEvents does what `events` does, without an informer.
func drainEvents(to *connection, wire string, bursts int) error {
	accept, err := contentType(wire)
	if err != nil {
		return err
	}
	config, err := to.config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	began := start()
	body, err := client.CoreV1().RESTClient().Get().Resource("pods").SetHeader("Accept", accept).
		Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan").
		Param("timeoutSeconds", "300").Stream(context.Background())
	if err != nil {
		return err
	}
	defer body.Close()
	tail := tailReader{body: body, buffer: make([]byte, tailSize+64*1024)}
	if err := tail.until(initialEventsEnd); err != nil {
		return err
	}
	line := began.stop("drain")
	line.Bytes = &tail.read
	heapInUse()
	time.Sleep(toRest)
	write(line)
	for range bursts {
		cpu := cpuTime()
		tail.first = time.Time{}
		if err := tail.until([]byte(lastOfEvents)); err != nil {
			return err
		}
		write(eventsLine{CPUMicros: (cpuTime() - cpu).Microseconds(), WallMicros: time.Since(tail.first).Microseconds()})
	}
	return nil
}

const tailSize = 1024

// tailReader reads up to something that nothing follows, so that it is at the end of what has arrived.
type tailReader struct {
	body   io.Reader
	buffer []byte
	kept   int
	read   uint64
	first  time.Time
}

func (r *tailReader) until(found []byte) error {
	for {
		n, err := r.body.Read(r.buffer[r.kept:])
		r.read += uint64(n)
		if r.first.IsZero() {
			r.first = time.Now()
		}
		arrived := r.buffer[:r.kept+n]
		last := arrived[max(0, len(arrived)-tailSize):]
		if bytes.Contains(last, found) {
			r.kept = 0
			return nil
		}
		r.kept = copy(r.buffer, last)
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", r.read, err)
		}
	}
}
