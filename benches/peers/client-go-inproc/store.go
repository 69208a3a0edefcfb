package main

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"
)

const byApp, byName = "app", "name"

// appIndex files objects under their app, nameIndex each one under a value of its own.
var (
	appIndex  = cache.Indexers{byApp: func(o any) ([]string, error) { return []string{o.(*object).app}, nil }}
	nameIndex = cache.Indexers{byName: func(o any) ([]string, error) { return []string{o.(*object).Name}, nil }}
)

func objectsOf(count, version int) (keys []string, objects []any) {
	for at := range count {
		o := objectOf(at, count, version)
		keys, objects = append(keys, keyOf(o)), append(objects, o)
	}
	return keys, objects
}

func filled(indexers cache.Indexers, keys []string, objects []any) cache.ThreadSafeStore {
	store := cache.NewThreadSafeStore(indexers, cache.Indices{})
	for at, key := range keys {
		store.Update(key, objects[at])
	}
	return store
}

// lookups measures single operations of the store.
func lookups(quick bool) {
	sizes := []int{10_000, 100_000, 1_000_000}
	if quick {
		sizes = sizes[:2]
	}
	for _, count := range sizes {
		keys, objects := objectsOf(count, 1)
		store := filled(appIndex, keys, objects)
		began := cpuTime()
		const rounds = 2_000
		for round := range rounds {
			found, err := store.ByIndex(byApp, objects[round*7919%(count/perApp)].(*object).app)
			if err != nil || len(found) != perApp {
				panic("the index is wrong")
			}
		}
		figure(name("by-label", count)+".us", micros(cpuTime()-began, rounds))
		plain := filled(cache.Indexers{}, keys, objects)
		began = cpuTime()
		lists := 2_000_000 / count
		for range lists {
			if len(plain.List()) != count {
				panic("the list is wrong")
			}
		}
		figure(name("list", count)+".ns", 1000*micros(cpuTime()-began, lists*count))
		began = cpuTime()
		updates := 0
		for updates < 500_000 {
			for _, at := range shuffled(count) {
				plain.Update(keys[at], objects[at])
				updates++
			}
		}
		figure(name("update", count)+".us", micros(cpuTime()-began, updates))
	}
}

const readers = 10

// writers counts how many writes of one goroutine get through while ten list without pause.
func writers(quick bool) {
	long := 3 * time.Second
	if quick {
		long = time.Second
	}
	for _, count := range []int{10_000, 160_000} {
		keys, objects := objectsOf(count, 1)
		store := filled(cache.Indexers{}, keys, objects)
		order := shuffled(count)
		write := func(at int) { store.Update(keys[order[at%count]], objects[order[at%count]]) }
		shared := beside(func() { store.List() }, func() {}, write, long)
		figure(name("writers", count)+".per-second", shared)
		cores := cores()
		if len(cores) < 2 {
			panic("this takes two cores")
		}
		// The writer has a core of its own; the readers are on another, and the rest of the process is too.
		keepTo(cores[1])
		apart := beside(func() { store.List() }, func() { pinTo(cores[0]) }, write, long)
		keepTo(cores...)
		figure(name("writers", count)+".apart.per-second", apart)
	}
}

// beside counts how often one goroutine, which begins with prepare, writes in a second while ten read.
func beside(read, prepare func(), write func(at int), long time.Duration) float64 {
	var stop atomic.Bool
	ended, perSecond := make(chan struct{}), make(chan float64)
	for range readers {
		go func() {
			for !stop.Load() {
				read()
			}
			ended <- struct{}{}
		}()
	}
	go func() {
		prepare()
		time.Sleep(100 * time.Millisecond)
		began, writes := time.Now(), 0
		for time.Since(began) < long {
			write(writes)
			writes++
		}
		perSecond <- float64(writes) / time.Since(began).Seconds()
	}()
	result := <-perSecond
	stop.Store(true)
	for range readers {
		<-ended
	}
	return result
}

// memory measures what an entry of the store takes beyond its object and the text of its key, which are there before.
func memory(quick bool) {
	sizes := []int{10_000, 100_000, 1_000_000}
	if quick {
		sizes = sizes[:2]
	}
	for _, count := range sizes {
		keys, objects := objectsOf(count, 1)
		before := heapInUse()
		store := filled(cache.Indexers{}, keys, objects)
		figure(name("memory", count)+".plain", float64(heapInUse()-before)/float64(count))
		_ = store.ListKeys()
		store = nil
		before = heapInUse()
		store = filled(nameIndex, keys, objects)
		figure(name("memory", count)+".unique", float64(heapInUse()-before)/float64(count))
		if len(store.ListKeys()) != len(objects) || len(keys) != len(objects) {
			panic("objects are missing")
		}
	}
}
