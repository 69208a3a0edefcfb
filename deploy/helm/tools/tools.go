//go:build tools

// Package tools names what the tests of the chart are built from: helm itself.
package tools

import (
	_ "helm.sh/helm/v4/cmd/helm"
)
