package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// history runs an informer of Pods, from a factory without resync, as most programs do.
//
// Orders on stdin: `report`, `handled`, `release` (lets a handler of --block go on). It ends with stdin.
func history(arguments []string) error {
	var to connection
	set := flag.NewFlagSet("history", flag.ExitOnError)
	to.flags(set)
	quiet := set.Bool("quiet", false, "count events instead of printing them")
	block := set.Bool("block", false, "let the handler block in its first update until `release`")
	_ = set.Parse(arguments)

	var said log
	klog.SetLogger(funcr.New(func(_, text string) { said.add(text) }, funcr.Options{}))
	client, err := to.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(to.namespace))
	informer := factory.Core().V1().Pods().Informer()
	handler := &recorder{quiet: *quiet, versions: map[string]string{}, released: make(chan struct{})}
	if !*block {
		close(handler.released)
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	write(hello())
	factory.Start(ctx.Done())

	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		switch order := orders.Text(); order {
		case "report":
			heap, resident := memory()
			write(reportLine{
				Line: "report", Synced: informer.HasSynced(), Stored: len(informer.GetStore().ListKeys()),
				Added: handler.added.Load(), Updated: handler.updated.Load(),
				UpdatedUnchanged: handler.updatedUnchanged.Load(), Deleted: handler.deleted.Load(),
				Lists: to.requests.lists.Load(), StreamingLists: to.requests.streamingLists.Load(),
				Watches:   to.requests.watches.Load(),
				HeapBytes: heap, ResidentBytes: resident, Said: said.all(),
			})
		case "handled":
			handler.Lock()
			write(handledLine{"handled", handler.versions})
			handler.Unlock()
		case "release":
			close(handler.released)
		default:
			return fmt.Errorf("unknown order %q", order)
		}
	}
	return orders.Err()
}

// recorder is the handler.
type recorder struct {
	quiet                                     bool
	added, updated, updatedUnchanged, deleted atomic.Int64
	released                                  chan struct{}

	sync.Mutex
	versions map[string]string
}

func (r *recorder) OnAdd(object any, initial bool) {
	pod := object.(*corev1.Pod)
	r.added.Add(1)
	r.handled(pod)
	r.tell(eventLine{Line: "added", Key: key(pod), UID: string(pod.UID), ResourceVersion: pod.ResourceVersion, Initial: initial})
}

func (r *recorder) OnUpdate(before, after any) {
	<-r.released
	old, pod := before.(*corev1.Pod), after.(*corev1.Pod)
	r.updated.Add(1)
	if old.UID == pod.UID && old.ResourceVersion == pod.ResourceVersion {
		r.updatedUnchanged.Add(1)
	}
	r.handled(pod)
	r.tell(eventLine{
		Line: "updated", Key: key(pod), UID: string(pod.UID), ResourceVersion: pod.ResourceVersion,
		FromUID: string(old.UID), FromResourceVersion: old.ResourceVersion,
	})
}

func (r *recorder) OnDelete(object any) {
	tombstone, unknown := object.(cache.DeletedFinalStateUnknown)
	if unknown {
		object = tombstone.Obj
	}
	pod := object.(*corev1.Pod)
	r.deleted.Add(1)
	r.Lock()
	delete(r.versions, key(pod))
	r.Unlock()
	r.tell(eventLine{
		Line: "deleted", Key: key(pod), UID: string(pod.UID), ResourceVersion: pod.ResourceVersion,
		FinalStateUnknown: unknown,
	})
}

func (r *recorder) handled(pod *corev1.Pod) {
	r.Lock()
	defer r.Unlock()
	r.versions[key(pod)] = pod.ResourceVersion
}

func (r *recorder) tell(line eventLine) {
	if !r.quiet {
		write(line)
	}
}

func key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// log keeps what client-go logs, the first hundred entries of it.
type log struct {
	sync.Mutex
	entries []string
}

func (l *log) add(text string) {
	l.Lock()
	defer l.Unlock()
	if len(l.entries) < 100 {
		l.entries = append(l.entries, text)
	}
}

func (l *log) all() []string {
	l.Lock()
	defer l.Unlock()
	return append([]string{}, l.entries...)
}
