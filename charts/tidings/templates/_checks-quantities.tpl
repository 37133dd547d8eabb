{{/* Durations in the forms that other programs have, such as 7d. */}}
{{- define "tidings.checks.durations" -}}
{{- $found := list -}}
{{- $ttl := .Values.retention.eventTTL -}}
{{- if and (ne $ttl "never") (not (include "tidings.isDuration" $ttl)) -}}
{{- $found = append $found (printf "retention.eventTTL=%s is not a duration: write hours, such as 168h, or never" $ttl) -}}
{{- else if and (ne $ttl "never") (lt (include "tidings.nanoseconds" $ttl | int64) 1000000000) -}}
{{- $found = append $found (printf "retention.eventTTL=%s is too short: write 1s or more, or never" $ttl) -}}
{{- end -}}
{{- $times := dict "ownCluster.mirror.originEventTTL" .Values.ownCluster.mirror.originEventTTL -}}
{{- range $name := list "duration" "renewBefore" -}}
{{- $_ := set $times (printf "tls.certManager.%s" $name) (index $.Values.tls.certManager $name) -}}
{{- end -}}
{{- range .Values.clusters -}}
{{- $_ := set $times (printf "clusters: %s: mirror.originEventTTL" .name) (dig "originEventTTL" "" (default dict .mirror)) -}}
{{- end -}}
{{- range $name, $time := $times -}}
{{- if and $time (not (include "tidings.isDuration" $time)) -}}
{{- $found = append $found (printf "%s=%s is not a duration: write hours, such as 168h" $name $time) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* Kubernetes refuses a request above its limit, but a limit below the heap only ends with OOMKilled. */}}
{{- define "tidings.checks.resources" -}}
{{- $found := list -}}
{{- $v := .Values -}}
{{- range $at, $resources := dict "resources" $v.resources "etcd.trial.resources" $v.etcd.trial.resources -}}
{{- $limits := dig "limits" dict (default dict $resources) | default dict -}}
{{- $requests := dig "requests" dict (default dict $resources) | default dict -}}
{{- range $kind, $all := dict "limits" $limits "requests" $requests -}}
{{- range $name, $value := $all -}}
{{- if not (include "tidings.quantity" $value) -}}
{{- $found = append $found (printf "%s.%s.%s=%s is not a quantity: write such as 2Gi for memory, or 250m for cpu" $at $kind $name (include "tidings.text" $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $limit := $limits -}}
{{- $request := get $requests $name -}}
{{- if lt (include "tidings.quantity" $limit | float64) (include "tidings.quantity" $request | float64) -}}
{{- $found = append $found (printf "%s.limits.%s=%s is less than %s.requests.%s=%s: Kubernetes refuses that" $at $name (include "tidings.text" $limit) $at $name (include "tidings.text" $request)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $memory := dig "limits" "memory" "" (default dict $v.resources | deepCopy) -}}
{{- $heap := include "tidings.heapMiB" . | int64 -}}
{{- if and $memory (lt (include "tidings.quantity" $memory | float64) (mulf $heap 1048576)) -}}
{{- $found = append $found (printf "resources.limits.memory=%s does not hold the heap that nodeOptions allows, %d MiB: raise the limit or lower --max-old-space-size; events are outside the heap and need memory too" (include "tidings.text" $memory) $heap) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}
