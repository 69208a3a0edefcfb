//go:build tools

// Package tools pins helm, with which the chart is tested. Nothing here is compiled into a program of ours:
// `deploy/helm/check` builds the main package straight from its module, and the imports keep go.mod and go.sum complete.
package tools

import (
	_ "helm.sh/helm/v4/pkg/cmd"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)
