//go:build tools

// Package realcluster pins what the tests' real cluster is made of. Nothing
// here is compiled into a program of ours: the script `cluster` builds the
// main packages next to these imports straight from their modules, and the
// imports keep go.mod and go.sum complete.
package realcluster

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
)
