// The CustomResourceDefinitions of what the chart makes for others, as their modules have them.
// Nothing of them is compiled: `go mod download` fetches them, go.sum pins them.
module informer/deploy/helm/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
