package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// scope is what one informer is of. Its name is the user agent of its requests.
type scope struct {
	name, namespace, labels, fields string
}

// histories runs an informer for each scope, NAME=NAMESPACE;LABELS;FIELDS, and prints every call of its handler and
// every answer to its requests, until stdin ends. On the line `dump` it prints the stores.
func histories(config *rest.Config, wire string, scopes []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var named []namedInformer
	for _, text := range scopes {
		name, rest, _ := strings.Cut(text, "=")
		parts := strings.Split(rest, ";")
		if len(parts) != 3 {
			return fmt.Errorf("%q is not NAME=NAMESPACE;LABELS;FIELDS", text)
		}
		informer, err := follower(config, wire, scope{name, parts[0], parts[1], parts[2]})
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(&printer{informer: name, ended: func() {}}); err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
		named = append(named, namedInformer{name, informer})
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() != "dump" {
			return fmt.Errorf("unknown order %q", lines.Text())
		}
		for _, it := range named {
			for _, object := range it.informer.GetStore().List() {
				if err := tell("object", it.name, object); err != nil {
					return err
				}
			}
		}
		write(line{Line: "dumped"})
	}
	return lines.Err()
}

func follower(config *rest.Config, wire string, of scope) (cache.SharedIndexInformer, error) {
	config, err := typedConfig(config, wire)
	if err != nil {
		return nil, err
	}
	config.UserAgent = of.name
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(of.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.LabelSelector, options.FieldSelector = of.labels, of.fields
		}))
	return factory.Core().V1().Pods().Informer(), nil
}
