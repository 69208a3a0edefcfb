package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"k8s.io/client-go/kubernetes"
)

// What the bookmark says that ends the initial events of a watch.
var initialEventsEnd = []byte("k8s.io/initial-events-end")

// drain asks for what an informer of Pods would, with the same client, and throws the bytes away.
func drain(arguments []string) error {
	var to connection
	set := flag.NewFlagSet("drain", flag.ExitOnError)
	to.flags(set)
	wire := set.String("wire", "protobuf", "`protobuf` or json")
	metadata := set.Bool("metadata", false, "ask for metadata only")
	_ = set.Parse(arguments)

	accept, err := contentType(*wire)
	if err != nil {
		return err
	}
	list := to.initial == "list"
	if *metadata {
		kind := "PartialObjectMetadata"
		if list {
			kind += "List"
		}
		accept += ";as=" + kind + ";g=meta.k8s.io;v=v1"
	}
	config, err := to.config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	request := client.CoreV1().RESTClient().Get().Resource("pods").SetHeader("Accept", accept)
	if list {
		request = request.Param("resourceVersion", "0").Param("limit", "500")
	} else {
		request = request.Param("watch", "true").Param("allowWatchBookmarks", "true").
			Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan").
			Param("timeoutSeconds", "300")
	}
	began := start()
	body, err := request.Stream(context.Background())
	if err != nil {
		return err
	}
	read, err := readAll(body, !list)
	if err != nil {
		return err
	}
	line := began.stop("drain")
	line.Bytes = &read
	line.Resident, line.ResidentPeak = resident()
	write(line)
	return body.Close()
}

// readAll reads to the end, or to the bookmark: nothing follows that, so it is at the end of what has arrived.
func readAll(body io.Reader, toBookmark bool) (read uint64, err error) {
	const tail = 1024
	buffer := make([]byte, tail+64*1024)
	kept := 0
	for {
		n, err := body.Read(buffer[kept:])
		read += uint64(n)
		arrived := buffer[:kept+n]
		last := arrived[max(0, len(arrived)-tail):]
		if toBookmark && bytes.Contains(last, initialEventsEnd) {
			return read, nil
		}
		kept = copy(buffer, last)
		switch {
		case errors.Is(err, io.EOF) && !toBookmark:
			return read, nil
		case err != nil:
			return read, fmt.Errorf("after %d bytes: %w", read, err)
		}
	}
}
