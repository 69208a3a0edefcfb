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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type arguments struct {
	server, namespace, agent, lease string
	concurrency, five               int
	consistent, verify              bool
	connection                      *rest.Config
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
	flag.BoolVar(&a.verify, "verify", false, "read each write back from the server, past the cache, and tell whether it is seen")
	flag.Parse()
	sayHello()
	ctrl.SetLogger(logr.Discard())
	start := run
	if a.five > 0 {
		start = five
	}
	err := a.connect()
	if err == nil {
		err = start(ctrl.SetupSignalHandler(), &a)
	}
	if err != nil {
		sayFailed(err)
		_, _ = fmt.Fprintln(os.Stderr, "controller-runtime:", err)
		os.Exit(1)
	}
}

func (a *arguments) connect() (err error) {
	a.connection = &rest.Config{Host: a.server}
	if a.server == "" {
		// That of --kubeconfig, a flag of controller-runtime's own.
		if a.connection, err = ctrl.GetConfig(); err != nil {
			return err
		}
	}
	// Without a limit of requests, as the others have none.
	a.connection.UserAgent, a.connection.QPS = a.agent, -1
	return nil
}

func (a *arguments) config() *rest.Config { return a.connection }

func (a *arguments) client(manager ctrl.Manager) client.Client {
	if !a.verify {
		return manager.GetClient()
	}
	return &verified{manager.GetClient(), manager.GetAPIReader()}
}
