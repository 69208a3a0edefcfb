package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// openapiKinds are read into k8s-openapi's types field by field, rather than through serde: those that clusters have many of.
var openapiKinds = []string{
	"v1/ConfigMap", "v1/Endpoints", "v1/Event", "v1/Namespace", "v1/Node", "v1/PersistentVolume", "v1/PersistentVolumeClaim",
	"v1/Pod", "v1/Secret", "v1/Service", "v1/ServiceAccount",
	"apps/v1/ControllerRevision", "apps/v1/DaemonSet", "apps/v1/Deployment", "apps/v1/ReplicaSet", "apps/v1/StatefulSet",
	"autoscaling/v2/HorizontalPodAutoscaler",
	"batch/v1/CronJob", "batch/v1/Job",
	"coordination.k8s.io/v1/Lease",
	"discovery.k8s.io/v1/EndpointSlice",
	"events.k8s.io/v1/Event",
	"networking.k8s.io/v1/Ingress", "networking.k8s.io/v1/NetworkPolicy",
	"policy/v1/PodDisruptionBudget",
	"rbac.authorization.k8s.io/v1/ClusterRole", "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
	"rbac.authorization.k8s.io/v1/Role", "rbac.authorization.k8s.io/v1/RoleBinding",
	"storage.k8s.io/v1/VolumeAttachment",
}

// What k8s-openapi has in some of its versions only: messages, and fields as message.name, with the minor version from which on it
// is there. 0 is for what a later version does not have: objects with it are left to serde, as are those with fields that
// this program does not know yet.
var openapiSince = map[string]int{
	"ContainerExtendedResourceRequest":               34,
	"ContainerRestartRule":                           34,
	"ContainerRestartRuleOnExitCodes":                34,
	"FileKeySelector":                                34,
	"ImageVolumeStatus":                              36,
	"PodCertificateProjection":                       34,
	"PodExtendedResourceClaimStatus":                 34,
	"PodSchedulingGroup":                             36,
	"VolumeStatus":                                   36,
	"Container.restartPolicyRules":                   34,
	"EnvVarSource.fileKeyRef":                        34,
	"EphemeralContainer.restartPolicyRules":          34,
	"NodeStatus.declaredFeatures":                    35,
	"PodCertificateProjection.userAnnotations":       35,
	"PodSpec.hostnameOverride":                       34,
	"PodSpec.schedulingGroup":                        36,
	"PodStatus.allocatedResources":                   35,
	"PodStatus.extendedResourceClaimStatus":          34,
	"PodStatus.nodeAllocatableResourceClaimStatuses": 0,
	"PodStatus.resources":                            35,
	"ResourceHealth.message":                         36,
	"VolumeMountStatus.volumeStatus":                 36,
	"VolumeProjection.podCertificate":                34,
}

// openapiBySerde are messages whose Rust type has no default to begin with, since it must have a time.
var openapiBySerde = []string{"k8s.io/api/events/v1.EventSeries", "k8s.io/apimachinery/pkg/apis/meta/v1.Condition"}

// writeOpenapi writes, as Rust source, which field of k8s-openapi's types each field of these kinds' messages is.
func writeOpenapi(out io.Writer, s *schemaDef) error {
	w := bufio.NewWriter(out)
	if err := writeHead(w, "openapi"); err != nil {
		return err
	}
	fmt.Fprintln(w, "use std::any::{Any, TypeId};")
	fmt.Fprintln(w)
	fmt.Fprintln(w, "use super::{Message, Object, Read, Value, fill, protobuf};")
	fmt.Fprintln(w)
	fmt.Fprintln(w, "objects! {")
	var reached []*messageDef
	for _, name := range openapiKinds {
		at := slices.IndexFunc(s.kinds, func(kind kindDef) bool { return kind.String() == name })
		if at < 0 {
			return fmt.Errorf("%s is no kind of the table", name)
		}
		message := s.byType[s.kinds[at].typ]
		path, err := rustPath(message)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "    %s\n", path)
		reached = reach(message, reached)
	}
	fmt.Fprintln(w, "}")
	slices.SortFunc(reached, func(a, b *messageDef) int { return strings.Compare(a.name(), b.name()) })
	used := map[string]bool{}
	for _, message := range reached {
		if err := writeOpenapiMessage(w, message, used); err != nil {
			return err
		}
	}
	for name := range openapiSince {
		if !used[name] {
			return fmt.Errorf("openapiSince has %s, which is in no message", name)
		}
	}
	return w.Flush()
}

func writeOpenapiMessage(w io.Writer, message *messageDef, used map[string]bool) error {
	path, err := rustPath(message)
	if err != nil {
		return err
	}
	name := message.typ.Name()
	var always []string
	since := map[int][]string{}
	for _, field := range message.fields {
		for _, key := range keys(field) {
			place := name + "." + key.name
			minor, isLimited := openapiSince[place]
			used[place] = true
			text := fmt.Sprintf("%#x %s", key.number, rustName(key.name))
			switch {
			case !isLimited:
				always = append(always, text)
			case minor != 0:
				since[minor] = append(since[minor], text)
			}
		}
	}
	var late strings.Builder
	for minor := 33; minor < 64; minor++ {
		if fields := since[minor]; fields != nil {
			fmt.Fprintf(&late, " k8s_if_ge_1_%d { %s }", minor, strings.Join(fields, ", "))
		}
	}
	line := fmt.Sprintf("message!(%q, %s { %s }%s);", message.name(), path, strings.Join(always, ", "), late.String())
	if minor, isLimited := openapiSince[name]; isLimited {
		used[name] = true
		line = fmt.Sprintf("k8s_openapi::k8s_if_ge_1_%d! { %s }", minor, line)
	}
	_, err = fmt.Fprintln(w, line)
	return err
}

// openapiKey is a field that a Rust struct has: its number, and from 0x100 on the number of the message that JSON has inline.
type openapiKey struct {
	number int
	name   string
}

func keys(field fieldDef) []openapiKey {
	if field.flags&inline == 0 {
		return []openapiKey{{field.number, field.name}}
	}
	var within []openapiKey
	for _, inner := range field.message.fields {
		// What is inline in it is not listed, so that objects with it are left to serde.
		if inner.flags&inline == 0 {
			within = append(within, openapiKey{field.number<<8 | inner.number, inner.name})
		}
	}
	return within
}

// reach lists the messages that are Rust structs of their own, and in this one.
func reach(message *messageDef, reached []*messageDef) []*messageDef {
	if slices.Contains(reached, message) || slices.Contains(openapiBySerde, message.name()) {
		return reached
	}
	reached = append(reached, message)
	for _, field := range message.fields {
		within := []fieldDef{field}
		if field.flags&inline != 0 {
			within = field.message.fields
		}
		for _, inner := range within {
			minor, isLimited := openapiSince[message.typ.Name()+"."+inner.name]
			if inner.kind == "Message" && inner.flags&inline == 0 && !(isLimited && minor == 0) {
				reached = reach(inner.message, reached)
			}
		}
	}
	return reached
}

func rustPath(message *messageDef) (string, error) {
	module, found := strings.CutPrefix(message.typ.PkgPath(), "k8s.io/")
	if !found {
		return "", fmt.Errorf("%s is of a module that k8s-openapi does not have", message.name())
	}
	return strings.ReplaceAll(module, "/", "::") + "::" + message.typ.Name(), nil
}

// rustName is how k8s-openapi names a field: podIPs is pod_ips.
func rustName(name string) string {
	letters := []rune(name)
	var out strings.Builder
	for i, letter := range letters {
		if unicode.IsUpper(letter) && i > 0 {
			rest := letters[i+1:]
			// The last of several upper letters begins a word, unless it is the plural of an abbreviation.
			begins := len(rest) > 0 && unicode.IsLower(rest[0]) && !(rest[0] == 's' && (len(rest) == 1 || unicode.IsUpper(rest[1])))
			if !unicode.IsUpper(letters[i-1]) || begins {
				out.WriteByte('_')
			}
		}
		out.WriteRune(unicode.ToLower(letter))
	}
	switch word := out.String(); word {
	case "type", "continue", "ref", "match", "static", "use":
		return word + "_"
	default:
		return word
	}
}
