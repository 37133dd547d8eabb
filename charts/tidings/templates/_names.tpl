{{- define "tidings.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimAll "-" -}}
{{- end -}}

{{/*
At most 40 characters, so that every suffix fits into a DNS label. Releases may have dots in their names, Services not.
*/}}
{{- define "tidings.fullname" -}}
{{- $release := .Release.Name | replace "." "-" -}}
{{- $name := printf "%s-%s" $release (include "tidings.name" .) -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if contains (include "tidings.name" .) $release -}}
{{- $name = $release -}}
{{- end -}}
{{- $name | trunc 40 | trimAll "-" -}}
{{- end -}}

{{- define "tidings.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tidings.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "tidings.chartLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "tidings.commonLabels" -}}
{{ include "tidings.chartLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tidings.labels" -}}
{{ include "tidings.selectorLabels" . }}
{{ include "tidings.commonLabels" . }}
{{- end -}}

{{- define "tidings.etcd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tidings.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: trial-etcd
{{- end -}}

{{- define "tidings.etcd.labels" -}}
{{ include "tidings.etcd.selectorLabels" . }}
{{ include "tidings.commonLabels" . }}
{{- end -}}

{{- define "tidings.etcd.name" -}}
{{ include "tidings.fullname" . }}-etcd
{{- end -}}

{{- define "tidings.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tidings.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "tidings.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "tidings.tlsSecret" -}}
{{- if eq .Values.tls.type "existingSecret" -}}
{{ .Values.tls.existingSecret }}
{{- else -}}
{{ include "tidings.fullname" . }}-tls
{{- end -}}
{{- end -}}

{{/* The name by which clients inside the cluster reach the Service. */}}
{{- define "tidings.host" -}}
{{ include "tidings.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end -}}

{{/* A YAML list: the names of the serving certificate. */}}
{{- define "tidings.dnsNames" -}}
{{- $host := include "tidings.host" . -}}
{{- $short := include "tidings.fullname" . -}}
{{- $names := list $host (printf "%s.%s" $host .Values.tls.clusterDomain) $short (printf "%s.%s" $short .Release.Namespace) "localhost" -}}
{{- concat $names .Values.tls.extraDNSNames | uniq | toYaml -}}
{{- end -}}

{{/* A YAML list: the addresses of the serving certificate. */}}
{{- define "tidings.ipAddresses" -}}
{{- concat (list "127.0.0.1") .Values.tls.extraIPAddresses | uniq | toYaml -}}
{{- end -}}

{{- define "tidings.etcdServers" -}}
{{- if .Values.etcd.trial.enabled -}}
http://{{ include "tidings.etcd.name" . }}.{{ .Release.Namespace }}.svc:2379
{{- else -}}
{{ join "," .Values.etcd.endpoints }}
{{- end -}}
{{- end -}}

{{/* "true" when pods need a token of their service account: for the own cluster only. */}}
{{- define "tidings.usesServiceAccount" -}}
{{- if or .Values.ownCluster.mirror.enabled (eq .Values.ownCluster.authorization "origin") -}}true{{- end -}}
{{- end -}}

{{/* "true" when there is a clusters file. */}}
{{- define "tidings.hasClusters" -}}
{{- if or .Values.clusters (include "tidings.usesServiceAccount" .) -}}true{{- end -}}
{{- end -}}

{{/* A YAML map: the labels of an object, with those that only it has (root, labels), which win over those of all. */}}
{{- define "tidings.labelsWith" -}}
{{- merge (deepCopy (default dict .labels)) (include "tidings.labels" .root | fromYaml) | toYaml -}}
{{- end -}}

{{/* "true" when clients need no credentials for a path: (path, openPaths), of which * at the end stands for any rest. */}}
{{- define "tidings.isOpen" -}}
{{- $path := .path -}}
{{- range .openPaths -}}
{{- if or (eq . $path) (and (hasSuffix "*" .) (hasPrefix (trimSuffix "*" .) $path)) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A YAML list: the clusters with roles of their own, each with the ConfigMap of its files. No cluster has a dot in its
name, so the ConfigMap for all clusters is never that of one.
*/}}
{{- define "tidings.clusterRoles" -}}
{{- $all := list -}}
{{- range $name, $roles := .Values.roles.clusters -}}
{{- $own := printf "%s-roles%s" (include "tidings.fullname" $) (eq $name "_all" | ternary ".all-clusters" (printf "-%s" $name)) -}}
{{- $all = append $all (dict "cluster" $name "configMap" (default $own $roles.existingConfigMap) "files" (default dict $roles.files)) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{- define "tidings.hasRoles" -}}
{{- if or .Values.roles.existingConfigMap .Values.roles.files -}}true{{- end -}}
{{- end -}}

{{- define "tidings.hasRetentionPolicy" -}}
{{- if or .Values.retention.policy .Values.retention.existingConfigMap -}}true{{- end -}}
{{- end -}}

{{- define "tidings.hasAudit" -}}
{{- if or .Values.audit.policy .Values.audit.existingConfigMap -}}true{{- end -}}
{{- end -}}

{{/* "true" when the chart writes a file of its own into the folder config. */}}
{{- define "tidings.hasOwnConfig" -}}
{{- if or .Values.retention.policy .Values.audit.policy .Values.eventRateLimits.limits .Values.tracing.endpoint (include "tidings.hasClusters" .) -}}true{{- end -}}
{{- end -}}

{{- define "tidings.hasConfig" -}}
{{- if or (include "tidings.hasOwnConfig" .) .Values.retention.existingConfigMap .Values.audit.existingConfigMap -}}true{{- end -}}
{{- end -}}

{{/* The path of a history in a volume; empty for a bucket and for none. */}}
{{- define "tidings.history.directory" -}}
{{- if hasPrefix "file://" .Values.history.url -}}{{ trimPrefix "file://" .Values.history.url | trimSuffix "/" }}{{- end -}}
{{- end -}}

{{/* A YAML list: what the container's environment has for the bucket of history. */}}
{{- define "tidings.history.env" -}}
{{- $s3 := .Values.history.s3 -}}
{{- $env := list -}}
{{- with $s3.region -}}{{- $env = append $env (dict "name" "AWS_REGION" "value" .) -}}{{- end -}}
{{- with $s3.endpoint -}}{{- $env = append $env (dict "name" "AWS_ENDPOINT_URL_S3" "value" .) -}}{{- end -}}
{{- with $s3.existingSecret -}}
{{- range $name := list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" -}}
{{- $env = append $env (dict "name" $name "valueFrom" (dict "secretKeyRef" (dict "name" $s3.existingSecret "key" $name))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $env -}}
{{- end -}}

{{/* A YAML map: the resources of the container, with the memory of history: src/server/memory-budget.ts has the same sum. */}}
{{- define "tidings.resources" -}}
{{- $resources := deepCopy (default dict .Values.resources) -}}
{{- if .Values.history.url -}}
{{- $own := add (include "tidings.bytes" .Values.history.readerMemory | int64) (mul 608 1048576) -}}
{{- range $kind := list "requests" "limits" -}}
{{- $memory := dig $kind "memory" "" $resources -}}
{{- if $memory -}}
{{- $bytes := add (include "tidings.bytes" $memory | int64) $own -}}
{{- $_ := set (get $resources $kind) "memory" (printf "%dMi" (div (add $bytes 1048575) 1048576)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* "true" when some client can authenticate. */}}
{{- define "tidings.hasAuthentication" -}}
{{- $flags := list -}}
{{- range .Values.extraArgs -}}{{- $flags = append $flags (include "tidings.flagName" .) -}}{{- end -}}
{{- if or .Values.tokens.existingSecret .Values.clientCA.existingConfigMap (eq .Values.ownCluster.authorization "origin") (regexMatch "(^| )(oidc-issuer-url|service-account-key-file|authentication-token-webhook|requestheader-client-ca|anonymous-auth|token-auth|client-ca)" (join " " $flags)) -}}true{{- end -}}
{{- end -}}

{{/* The least space for a quota of etcd: the file, a second one while it is defragmented, and the log. */}}
{{- define "tidings.etcd.space" -}}
{{- mul (include "tidings.bytes" . | int64) 3 -}}
{{- end -}}

{{/* A number or text as text; empty for a value that is null. */}}
{{- define "tidings.text" -}}
{{- if not (kindIs "invalid" .) -}}{{- toString . -}}{{- end -}}
{{- end -}}
