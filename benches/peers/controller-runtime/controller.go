package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const byOwner = ".metadata.controller"

type reconciler struct{ client.Client }

func run(ctx context.Context, arguments *arguments) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := addToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(arguments.config(), ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{arguments.namespace: {}}},
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &arguments.consistent}},
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          arguments.lease != "",
		LeaderElectionID:        arguments.lease,
		LeaderElectionNamespace: arguments.namespace,
	})
	if err != nil {
		return err
	}
	owner := func(object client.Object) []string {
		if owner := v1.GetControllerOf(object); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	if err := manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, byOwner, owner); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Set{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: arguments.concurrency}).
		Complete(&reconciler{arguments.client(manager)})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var set Set
	if err := r.Get(ctx, request.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.reconcile(ctx, &set)
	if err != nil {
		sayFailed(err)
	}
	return ctrl.Result{}, err
}

func (r *reconciler) reconcile(ctx context.Context, set *Set) error {
	var own corev1.ConfigMapList
	if err := r.List(ctx, &own, client.InNamespace(set.Namespace), client.MatchingFields{byOwner: string(set.UID)}); err != nil {
		return err
	}
	sayReconcile(set, own.Items)
	for range set.Spec.Replicas - len(own.Items) {
		child := corev1.ConfigMap{ObjectMeta: v1.ObjectMeta{Namespace: set.Namespace, GenerateName: "child-"}}
		if err := ctrl.SetControllerReference(set, &child, r.Scheme()); err != nil {
			return err
		}
		if err := r.Create(ctx, &child); err != nil {
			return err
		}
	}
	for at := set.Spec.Replicas; at < len(own.Items); at++ {
		uid := client.Preconditions{UID: &own.Items[at].UID}
		if err := client.IgnoreNotFound(r.Delete(ctx, &own.Items[at], uid)); err != nil {
			return err
		}
	}
	status := SetStatus{Replicas: len(own.Items), ObservedGeneration: set.Generation}
	if set.Status != nil && *set.Status == status {
		return nil
	}
	set.Status = &status
	return r.Status().Update(ctx, set)
}
