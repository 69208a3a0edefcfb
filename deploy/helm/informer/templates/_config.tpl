{{- /* What serve reads: the fields of values, and those that follow from others. */ -}}
{{- define "informer.config" -}}
{{- $names := list -}}
{{- range .Values.cache.resources -}}
{{- $names = append $names (include "informer.resourceName" .) -}}
{{- end -}}
{{- $allow := ternary (list "*") (list) .Values.cache.everything -}}
{{- range concat .Values.cache.resources .Values.cache.onDemand -}}
{{- $allow = append $allow (include "informer.resourceName" .) -}}
{{- end -}}
{{- $own := dict
  "apiVersion" "serve.informer/v1alpha1"
  "kind" "ServeConfiguration"
  "allow" ($allow | uniq)
  "addr" (printf "[::]:%v" .Values.port)
  "tlsCertFile" "/etc/informer/tls/tls.crt"
  "tlsPrivateKeyFile" "/etc/informer/tls/tls.key"
  "shutdownSpread" (printf "%vs" .Values.shutdown.spreadSeconds)
-}}
{{- with $names }}{{ $_ := set $own "cache" . }}{{ end -}}
{{- if .Values.clientCA.configMap }}{{ $_ := set $own "clientCaFile" "/etc/informer/client-ca/ca.crt" }}{{ end -}}
{{- if .Values.auditLog }}{{ $_ := set $own "auditLog" "-" }}{{ end -}}
{{- toYaml (merge $own .Values.config) -}}
{{- end }}

{{- /* As kubectl takes it: pods, deployments.apps. */ -}}
{{- define "informer.resourceName" -}}
{{- .resource }}{{ with .group }}.{{ . }}{{ end -}}
{{- end }}

{{- /* The rules that follow from what is held: list and watch, and for custom resources get of their definitions,
which say the columns of tables. */ -}}
{{- define "informer.cacheRules" -}}
{{- $builtIn := list "" "admissionregistration.k8s.io" "apiextensions.k8s.io" "apiregistration.k8s.io" "apps"
  "authentication.k8s.io" "authorization.k8s.io" "autoscaling" "batch" "certificates.k8s.io" "coordination.k8s.io"
  "discovery.k8s.io" "events.k8s.io" "flowcontrol.apiserver.k8s.io" "internal.apiserver.k8s.io" "networking.k8s.io"
  "node.k8s.io" "policy" "rbac.authorization.k8s.io" "resource.k8s.io" "scheduling.k8s.io" "storage.k8s.io"
  "storagemigration.k8s.io" -}}
{{- $rules := list -}}
{{- if .Values.cache.everything -}}
{{- $rules = append $rules (dict "apiGroups" (list "*") "resources" (list "*") "verbs" (list "list" "watch")) -}}
{{- $rules = append $rules (dict "apiGroups" (list "apiextensions.k8s.io")
  "resources" (list "customresourcedefinitions") "verbs" (list "get")) -}}
{{- else -}}
{{- $groups := dict -}}
{{- $definitions := list -}}
{{- range concat .Values.cache.resources .Values.cache.onDemand -}}
{{- $_ := set $groups .group (append (default (list) (get $groups .group)) .resource) -}}
{{- if not (has .group $builtIn) -}}
{{- $definitions = append $definitions (include "informer.resourceName" .) -}}
{{- end -}}
{{- end -}}
{{- range $group := keys $groups | sortAlpha -}}
{{- $rules = append $rules (dict "apiGroups" (list $group) "resources" (get $groups $group | uniq | sortAlpha)
  "verbs" (list "list" "watch")) -}}
{{- end -}}
{{- with $definitions -}}
{{- $rules = append $rules (dict "apiGroups" (list "apiextensions.k8s.io")
  "resources" (list "customresourcedefinitions") "resourceNames" (. | uniq | sortAlpha) "verbs" (list "get")) -}}
{{- end -}}
{{- end -}}
{{- with $rules }}{{ toYaml . }}{{ end -}}
{{- end }}
