package main

import (
	"context"
	"fmt"
	"reflect"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verified reads each write back from the server, past the manager's cache: it must be seen at once.
type verified struct {
	client.Client
	reader client.Reader
}

type verifiedStatus struct {
	client.SubResourceWriter
	of *verified
}

// seenLine tells whether a write was seen by the next reads.
type seenLine struct {
	Line    string `json:"line"`
	Verb    string `json:"verb"`
	Name    string `json:"name"`
	Message string `json:"message,omitempty"`
}

func (v *verified) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := v.Client.Create(ctx, object, options...); err != nil {
		return err
	}
	return v.saySeen(ctx, "create", object, true)
}

func (v *verified) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := v.Client.Delete(ctx, object, options...); err != nil {
		return err
	}
	return v.saySeen(ctx, "delete", object, false)
}

func (v *verified) Status() client.SubResourceWriter { return &verifiedStatus{v.Client.Status(), v} }

func (s *verifiedStatus) Update(ctx context.Context, object client.Object, options ...client.SubResourceUpdateOption) error {
	if err := s.SubResourceWriter.Update(ctx, object, options...); err != nil {
		return err
	}
	return s.of.saySeen(ctx, "status", object, true)
}

func (v *verified) saySeen(ctx context.Context, verb string, object client.Object, exists bool) error {
	line := seenLine{"seen", verb, object.GetName(), ""}
	message, err := v.difference(ctx, object, exists)
	if err != nil {
		return err
	}
	if message != "" {
		line.Line, line.Message = "unseen", message
	}
	write(line)
	return nil
}

// difference is empty if a get, and a list of children, see what was written.
func (v *verified) difference(ctx context.Context, object client.Object, exists bool) (string, error) {
	found := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	err := v.reader.Get(ctx, client.ObjectKeyFromObject(object), found)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if apierrors.IsNotFound(err) == exists {
		return fmt.Sprintf("get: %v", err), nil
	}
	if exists && !isAtLeast(found, object) {
		return fmt.Sprintf("get: version %s, not %s", found.GetResourceVersion(), object.GetResourceVersion()), nil
	}
	if _, is := object.(*corev1.ConfigMap); !is {
		return "", nil
	}
	var list corev1.ConfigMapList
	if err := v.reader.List(ctx, &list, client.InNamespace(object.GetNamespace())); err != nil {
		return "", err
	}
	listed := false
	for at := range list.Items {
		listed = listed || list.Items[at].UID == object.GetUID()
	}
	if listed != exists {
		return fmt.Sprintf("list at %s: listed is %v", list.ResourceVersion, listed), nil
	}
	return "", nil
}

// isAtLeast says whether what was found is the object, or the same one later.
func isAtLeast(found, object client.Object) bool {
	version, err := strconv.ParseUint(found.GetResourceVersion(), 10, 64)
	own, ownErr := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return err == nil && ownErr == nil && version >= own && found.GetUID() == object.GetUID()
}
