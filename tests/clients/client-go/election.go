package main

import (
	"bufio"
	"context"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// stillLeading is how often a leader prints that it leads.
const stillLeading = 20 * time.Millisecond

// elect takes part in a leader election until stdin ends, and releases the Lease then. It prints `leads` again and
// again for as long as client-go lets it lead.
func elect(config *rest.Config, namespace, lease, identity string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		}
		cancel()
	}()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: lease},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   4 * time.Second,
		RenewDeadline:   3 * time.Second,
		RetryPeriod:     time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { lead(leading, identity) },
			OnStoppedLeading: func() { write(line{Line: "stopped", Key: identity}) },
			OnNewLeader:      func(leader string) { write(line{Line: "leader", Key: leader}) },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

func lead(leading context.Context, identity string) {
	ticks := time.NewTicker(stillLeading)
	defer ticks.Stop()
	for {
		write(line{Line: "leads", Key: identity, At: time.Now().UnixMicro()})
		select {
		case <-ticks.C:
		case <-leading.Done():
			return
		}
	}
}
