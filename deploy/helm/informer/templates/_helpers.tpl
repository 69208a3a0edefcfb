{{- define "informer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "informer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains (include "informer.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "informer.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- /* Names without a namespace belong to this release alone. */ -}}
{{- define "informer.clusterName" -}}
{{- printf "%s-%s" .Release.Namespace (include "informer.fullname" .) -}}
{{- end }}

{{- define "informer.serviceAccount" -}}
{{- default (include "informer.fullname" .) .Values.serviceAccount.name -}}
{{- end }}

{{- define "informer.tlsSecret" -}}
{{- default (printf "%s-tls" (include "informer.fullname" .)) .Values.tls.existingSecret -}}
{{- end }}

{{- define "informer.selectorLabels" -}}
app.kubernetes.io/name: {{ include "informer.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "informer.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "informer.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Labels and annotations of an object: (list . annotations-of-its-own) */ -}}
{{- define "informer.metadata" -}}
{{- $root := index . 0 -}}
labels:
  {{- include "informer.labels" $root | nindent 2 }}
{{- with merge (dict) (index . 1) $root.Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* A subject of a binding, with the group that users and groups have. */ -}}
{{- define "informer.subject" -}}
{{- $group := ternary (dict) (dict "apiGroup" "rbac.authorization.k8s.io") (eq .kind "ServiceAccount") -}}
{{- toYaml (merge (dict) . $group) -}}
{{- end }}

{{- define "informer.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* The names by which the endpoint is reached, one a line. */ -}}
{{- define "informer.hosts" -}}
{{- $service := printf "%s.%s" (include "informer.fullname" .) .Release.Namespace -}}
{{ $service }}.svc
{{ $service }}.svc.{{ .Values.clusterDomain }}
{{ $service }}
{{ include "informer.fullname" . }}
{{- range .Values.tls.certManager.dnsNames }}
{{ . }}
{{- end }}
{{- end }}

{{- /* A duration such as 1m30s in milliseconds. */ -}}
{{- define "informer.milliseconds" -}}
{{- $total := 0 -}}
{{- range regexFindAll "[0-9]+(ms|h|m|s)" . -1 -}}
{{- $number := regexFind "^[0-9]+" . | int -}}
{{- $factor := get (dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1) (regexFind "[a-z]+$" .) -}}
{{- $total = add $total (mul $number $factor) -}}
{{- end -}}
{{- $total -}}
{{- end }}

{{- /* A size such as 512Mi in bytes. A number in YAML is a float64, whose text may have an exponent. */ -}}
{{- define "informer.bytes" -}}
{{- $text := ternary (int64 .) . (kindIs "float64" .) | toString -}}
{{- $unit := regexFind "[A-Za-z]*$" $text -}}
{{- $factors := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- mul (trimSuffix $unit $text | int64) (get $factors $unit) -}}
{{- end }}
