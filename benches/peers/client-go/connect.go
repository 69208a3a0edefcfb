package main

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// connection is what every subcommand needs to reach a server.
type connection struct {
	kubeconfig, server, recording, namespace, initial string
	requests                                          requests
}

func (c *connection) flags(set *flag.FlagSet) {
	set.StringVar(&c.kubeconfig, "kubeconfig", "", "path of a kubeconfig, whose current context is used")
	set.StringVar(&c.server, "server", "", "URL of a server that wants neither TLS nor a token")
	set.StringVar(&c.recording, "recording", "", "path of a recorded answer, which is given to every list")
	set.StringVar(&c.namespace, "namespace", "", "namespace of the informer; all of them if empty")
	set.StringVar(&c.initial, "initial", "", "`list` to switch streaming lists off; else as client-go comes")
}

// client makes a client with client-go's defaults, which counts its requests.
func (c *connection) client() (*kubernetes.Clientset, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// config is client-go's, with which clients count their requests.
func (c *connection) config() (*rest.Config, error) {
	if c.initial == "list" {
		// How users switch it off. The environment is read at the first use of a feature gate.
		if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
			return nil, err
		}
	}
	config := &rest.Config{Host: c.server}
	switch {
	case c.kubeconfig != "":
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
			return nil, err
		}
	case c.recording != "":
		recording, err := readRecording(c.recording)
		if err != nil {
			return nil, err
		}
		config.Transport = recording
	case c.server == "":
		return nil, errors.New("--kubeconfig, --server or --recording is needed")
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, &c.requests} })
	return config, nil
}

// requests counts what was sent.
type requests struct {
	lists, streamingLists, watches atomic.Int64
}

type counting struct {
	next     http.RoundTripper
	requests *requests
}

func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		c.requests.streamingLists.Add(1)
	case query.Has("watch"):
		c.requests.watches.Add(1)
	default:
		c.requests.lists.Add(1)
	}
	return c.next.RoundTrip(request)
}
