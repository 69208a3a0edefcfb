package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// five runs five controllers over Pods that do nothing.
func five(ctx context.Context, arguments *arguments) error {
	manager, err := ctrl.NewManager(arguments.config(), ctrl.Options{
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{arguments.namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	var all countdown
	all.left.Store(int64(5 * arguments.five))
	for number := range 5 {
		err := ctrl.NewControllerManagedBy(manager).
			For(&corev1.Pod{}).
			Named(fmt.Sprintf("pod-%d", number+1)).
			WithOptions(controller.Options{MaxConcurrentReconciles: arguments.concurrency}).
			Complete(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
				all.count()
				return ctrl.Result{}, nil
			}))
		if err != nil {
			return err
		}
	}
	return manager.Start(ctx)
}
