package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
)

// How much of a recorded body arrives at a time.
const chunk = 32 * 1024

// recording gives the answer that a server once gave whenever it is asked for objects, and silence to a watch. The
// file is a line with the content type, then the body.
type recording struct {
	contentType string
	body        []byte
}

func readRecording(path string) (*recording, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	contentType, body, found := bytes.Cut(content, []byte("\n"))
	if !found {
		return nil, fmt.Errorf("%s has no first line", path)
	}
	return &recording{string(contentType), body}, nil
}

func (r *recording) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	watches := query.Has("watch")
	body := &recordedBody{}
	if !watches || query.Get("sendInitialEvents") == "true" {
		body.rest = r.body
	}
	if watches {
		body.ended = request.Context().Done()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {r.contentType}}, Body: body, ContentLength: -1, Request: request,
	}, nil
}

type recordedBody struct {
	rest []byte
	// Of a watch: the body ends with its request.
	ended <-chan struct{}
}

func (b *recordedBody) Read(into []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.ended != nil {
			<-b.ended
		}
		return 0, io.EOF
	}
	n := copy(into[:min(len(into), chunk)], b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *recordedBody) Close() error { return nil }
