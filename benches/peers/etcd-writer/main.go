// Command etcd-writer changes Pods behind the API server's back: it puts them into etcd as the API server would have
// stored them, so that what events cost is not mixed with what writing through the API server costs. Each state says in
// an annotation when it was sent.
//
//	etcd-writer --endpoint URL [--pods N] [--writers N]
//
// It compacts etcd, says `ready`, then obeys orders on stdin, which are two numbers: how many updates, and how many a
// second, 0 for as many as etcd takes. The updates go round over the first Pods of the cluster; when all of an order are
// acknowledged, one Pod more is put, whose name tells clients that this was all, and one line of JSON is printed. With
// its stdin it ends, and removes that Pod.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	prefix = "/registry/pods/"
	// The Pod behind the last event, which the clients know by its name.
	lastNamespace, lastName = "default", "the-last-of-the-events"
	lastKey                 = prefix + lastNamespace + "/" + lastName
)

func main() {
	endpoint := flag.String("endpoint", "", "etcd's `URL`")
	over := flag.Int("pods", 1000, "how many Pods they go round over")
	writers := flag.Int("writers", 16, "how many puts are under way at most")
	flag.Parse()
	if err := run(context.Background(), *endpoint, *over, *writers); err != nil {
		fmt.Fprintln(os.Stderr, "etcd-writer:", err)
		os.Exit(1)
	}
}

// figures is what it prints after each order.
type figures struct {
	Written    int   `json:"written"`
	WallMicros int64 `json:"wallUs"`
	CPUMicros  int64 `json:"cpuUs"`
}

func run(ctx context.Context, endpoint string, over, writers int) error {
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer etcd.Close()
	pods, err := read(ctx, etcd, over)
	if err != nil {
		return err
	}
	// A collection would be a pause in the rate.
	debug.SetGCPercent(800)
	fmt.Println("ready")
	orders, last, begin := bufio.NewScanner(os.Stdin), lastPod(), 0
	for orders.Scan() {
		var events int
		var rate float64
		if _, err := fmt.Sscan(orders.Text(), &events, &rate); err != nil {
			return fmt.Errorf("order %q: %w", orders.Text(), err)
		}
		cpu, began := cpuTime(), time.Now()
		if err := put(ctx, etcd, append(pods[begin:len(pods):len(pods)], pods[:begin]...), events, rate, writers); err != nil {
			return err
		}
		took := figures{events, time.Since(began).Microseconds(), (cpuTime() - cpu).Microseconds()}
		begin = (begin + events) % len(pods)
		last.stamp(time.Now())
		if _, err := etcd.Put(ctx, last.key, string(last.value)); err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
			return err
		}
	}
	if err := orders.Err(); err != nil {
		return err
	}
	_, err = etcd.Delete(ctx, lastKey)
	return err
}

// read fetches the Pods that are updated, and lets etcd forget what earlier runs wrote: it has room for 2 GB.
func read(ctx context.Context, etcd *clientv3.Client, over int) ([]*pod, error) {
	found, err := etcd.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(int64(over)+1))
	if err != nil {
		return nil, err
	}
	// It may have been compacted to here already.
	_, _ = etcd.Compact(ctx, found.Header.Revision, clientv3.WithCompactPhysical())
	pods := make([]*pod, 0, len(found.Kvs))
	for _, stored := range found.Kvs {
		if string(stored.Key) == lastKey || len(pods) == over {
			continue
		}
		pod, err := newPod(string(stored.Key), stored.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", stored.Key, err)
		}
		pods = append(pods, pod)
	}
	if len(pods) == 0 {
		return nil, errors.New("etcd has no Pods")
	}
	return pods, nil
}

// put sends the updates, each in its slot of time if there is a rate.
func put(ctx context.Context, etcd *clientv3.Client, pods []*pod, events int, rate float64, writers int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	// Two of them never have the same Pod.
	for range min(writers, len(pods)) {
		all.Go(func() {
			for ctx.Err() == nil {
				at := int(next.Add(1)) - 1
				if at >= events {
					return
				}
				if rate > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(float64(at) / rate * float64(time.Second)))))
				}
				pod := pods[at%len(pods)]
				pod.stamp(time.Now())
				if _, err := etcd.Put(ctx, pod.key, string(pod.value)); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// cpuTime is that of the process so far, user and system.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
