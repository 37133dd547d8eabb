{{/* A YAML list: the command line without extraArgs. Files are where volumes.tpl mounts them. */}}
{{- define "tidings.ownArgs" -}}
{{- $v := .Values -}}
- {{ printf "--etcd-servers=%s" (include "tidings.etcdServers" .) | quote }}
- "--etcd-prefix={{ $v.etcd.prefix }}"
{{- if and $v.etcd.tls.existingSecret (not $v.etcd.trial.enabled) }}
{{- with $v.etcd.tls.caFile }}
- "--etcd-cafile=/etc/tidings/etcd/{{ . }}"
{{- end }}
{{- with $v.etcd.tls.certFile }}
- "--etcd-certfile=/etc/tidings/etcd/{{ . }}"
- "--etcd-keyfile=/etc/tidings/etcd/{{ $v.etcd.tls.keyFile }}"
{{- end }}
{{- end }}
- "--secure-port={{ $v.containerPort }}"
- --tls-cert-file=/etc/tidings/tls/tls.crt
- --tls-private-key-file=/etc/tidings/tls/tls.key
{{- /* kubectl port-forward and sidecars come from loopback: whoever may use them would read metrics without a token. */}}
- --trust-loopback=false
{{- with $v.openPaths }}
- "--authorization-always-allow-paths={{ join "," . }}"
{{- end }}
{{- if $v.tokens.existingSecret }}
- "--token-auth-file=/etc/tidings/tokens/{{ $v.tokens.key }}"
{{- end }}
{{- if $v.clientCA.existingConfigMap }}
- "--client-ca-file=/etc/tidings/client-ca/{{ $v.clientCA.key }}"
{{- end }}
{{- if include "tidings.hasRoles" . }}
- --rbac-policy-path=/etc/tidings/roles
{{- end }}
{{- if $v.roles.clusters }}
- --rbac-policy-path=/etc/tidings/cluster-roles
{{- end }}
- "--cluster-name={{ $v.clusterName }}"
{{- if include "tidings.hasClusters" . }}
- --clusters-file=/etc/tidings/config/clusters.yaml
{{- end }}
- {{ printf "--event-ttl=%s" $v.retention.eventTTL | quote }}
{{- if include "tidings.hasRetentionPolicy" . }}
- --retention-policy-file=/etc/tidings/config/retention.yaml
{{- end }}
{{- with $v.history }}
{{- if .url }}
- "--history={{ .url }}"
- --history-cache-dir=/var/cache/tidings
- --history-cache-bytes={{ include "tidings.bytes" .cacheSize }}
- --history-reader-memory={{ include "tidings.bytes" .readerMemory }}
{{- end }}
{{- end }}
{{- if include "tidings.hasAudit" . }}
- --audit-policy-file=/etc/tidings/config/audit.yaml
- --audit-log-path=-
{{- end }}
{{- if $v.eventRateLimits.limits }}
- --event-rate-limit-config-file=/etc/tidings/config/event-rate-limits.yaml
{{- end }}
{{- if $v.tracing.endpoint }}
- --tracing-config-file=/etc/tidings/config/tracing.yaml
{{- end }}
{{- if not $v.ui.enabled }}
- --ui=false
{{- end }}
- "--shutdown-delay-duration={{ $v.shutdownDelaySeconds }}s"
- "--request-timeout={{ $v.requestTimeoutSeconds }}s"
- "--logging-format={{ $v.loggingFormat }}"
- "--v={{ $v.logVerbosity }}"
{{- end -}}

{{/*
The name of a flag, without hyphens: --name=value, --name or -v=3.
*/}}
{{- define "tidings.flagName" -}}
{{- regexReplaceAll "^--?([^=]*).*$" . "${1}" | replace "_" "-" -}}
{{- end -}}
