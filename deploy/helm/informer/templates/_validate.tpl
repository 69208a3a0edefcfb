{{- /* What a schema cannot compare. */ -}}
{{- define "informer.validate" -}}
{{- $replicas := int .Values.replicas -}}
{{- with .Values.podDisruptionBudget -}}
{{- $wanted := toString .minAvailable -}}
{{- $least := trimSuffix "%" $wanted | int -}}
{{- $rounded := "" -}}
{{- if hasSuffix "%" $wanted -}}
{{- /* As Kubernetes does: rounded up. */ -}}
{{- $least = div (add (mul $least $replicas) 99) 100 | int -}}
{{- $rounded = printf ", rounded up to %d," $least -}}
{{- end -}}
{{- if and .enabled .minAvailable $replicas (ge $least $replicas) -}}
{{- fail (printf "podDisruptionBudget.minAvailable (%v)%s must be less than replicas (%v), or no node can be drained" .minAvailable $rounded $replicas) -}}
{{- end -}}
{{- end -}}
{{- range concat .Values.cache.resources .Values.cache.onDemand -}}
{{- if eq .group "core" -}}
{{- fail (printf "cache: the group of %s is \"\": \"core\" is none" .resource) -}}
{{- end -}}
{{- end -}}
{{- $limit := dig "limits" "memory" "" .Values.resources -}}
{{- $held := .Values.config.maxMemory | default "1Gi" -}}
{{- if kindIs "float64" $held }}{{ $held = int64 $held }}{{ end -}}
{{- if kindIs "float64" $limit }}{{ $limit = int64 $limit }}{{ end -}}
{{- if and $limit (ge (include "informer.bytes" $held | int64) (include "informer.bytes" $limit | int64)) -}}
{{- fail (printf "config.maxMemory (%v) must be less than resources.limits.memory (%v): connections and answers take memory too" $held $limit) -}}
{{- end -}}
{{- with .Values.config.maxStaleness -}}
{{- if lt (include "informer.milliseconds" . | int64) 75000 -}}
{{- fail (printf "config.maxStaleness (%v) must be at least 75s: a quiet API server sends a bookmark once a minute" .) -}}
{{- end -}}
{{- end -}}
{{- with .Values.tls.certManager -}}
{{- if and .enabled (le (include "informer.milliseconds" .duration | int64) (include "informer.milliseconds" .renewBefore | int64)) -}}
{{- fail (printf "tls.certManager.renewBefore (%v) must be less than duration (%v)" .renewBefore .duration) -}}
{{- end -}}
{{- end -}}
{{- end }}
