// Command controller-runtime is the small controller of `benches/peers/controllers` on controller-runtime.
// `tests/long-runs/src/bin/controllers` puts them side by side.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

type arguments struct {
	server, namespace, agent, lease string
	concurrency, five               int
	consistent                      bool
}

func main() {
	var a arguments
	flag.StringVar(&a.server, "server", "", "URL of a server that wants neither TLS nor a token")
	flag.StringVar(&a.namespace, "namespace", "", "namespace of the Sets")
	flag.StringVar(&a.agent, "agent", "", "the client's name in its requests")
	flag.StringVar(&a.lease, "lease", "", "reconcile only while the Lease of this name is held")
	flag.IntVar(&a.concurrency, "concurrency", 8, "how many Sets are reconciled at a time")
	flag.IntVar(&a.five, "five", 0, "run five controllers over so many Pods that do nothing")
	flag.BoolVar(&a.consistent, "consistent", false, "switch the experiment on with which reads wait for own writes")
	flag.Parse()
	sayHello()
	ctrl.SetLogger(logr.Discard())
	start := run
	if a.five > 0 {
		start = five
	}
	if err := start(ctrl.SetupSignalHandler(), &a); err != nil {
		sayFailed(err)
		_, _ = fmt.Fprintln(os.Stderr, "controller-runtime:", err)
		os.Exit(1)
	}
}

// config has no limit of requests, as the others have none.
func (a *arguments) config() *rest.Config {
	return &rest.Config{Host: a.server, UserAgent: a.agent, QPS: -1}
}
