{{/*
Files of the container. Every ConfigMap and Secret is mounted as a whole folder and never with subPath,
which is not updated when the object changes: the server polls its files and reloads them.
Modes are 0440, in decimal: root owns the files, and the group of fsGroup reads them.
*/}}
{{- define "tidings.volumes" -}}
{{- $v := .Values -}}
- name: tls
  secret:
    secretName: {{ include "tidings.tlsSecret" . | quote }}
    defaultMode: 288
{{- if and $v.etcd.tls.existingSecret (not $v.etcd.trial.enabled) }}
- name: etcd
  secret:
    secretName: {{ $v.etcd.tls.existingSecret | quote }}
    defaultMode: 288
{{- end }}
{{- with $v.tokens.existingSecret }}
- name: tokens
  secret:
    secretName: {{ . | quote }}
    defaultMode: 288
{{- end }}
{{- with $v.clientCA.existingConfigMap }}
- name: client-ca
  configMap:
    name: {{ . | quote }}
{{- end }}
{{- if include "tidings.hasRoles" . }}
- name: roles
  configMap:
    name: {{ default (printf "%s-roles" (include "tidings.fullname" .)) $v.roles.existingConfigMap | quote }}
{{- end }}
{{- range $at, $one := include "tidings.clusterRoles" . | fromYamlArray }}
- name: cluster-roles-{{ $at }}
  configMap:
    name: {{ $one.configMap | quote }}
{{- end }}
{{- if include "tidings.hasConfig" . }}
- name: config
  # One volume, so that the clusters file and the kubeconfigs that it names change together.
  projected:
    defaultMode: 288
    sources:
      {{- if include "tidings.hasOwnConfig" . }}
      - configMap:
          name: "{{ include "tidings.fullname" . }}-config"
      {{- end }}
      {{- with $v.retention.existingConfigMap }}
      - configMap:
          name: {{ . | quote }}
          items:
            - key: retention.yaml
              path: retention.yaml
      {{- end }}
      {{- with $v.audit.existingConfigMap }}
      - configMap:
          name: {{ . | quote }}
          items:
            - key: audit.yaml
              path: audit.yaml
      {{- end }}
      {{- range $v.clusters }}
      {{- if .kubeconfigSecret }}
      - secret:
          name: {{ .kubeconfigSecret.name | quote }}
          items:
            - key: {{ default "kubeconfig" .kubeconfigSecret.key | quote }}
              path: "kubeconfigs/{{ .name }}"
      {{- end }}
      {{- end }}
{{- end }}
{{- if include "tidings.usesServiceAccount" . }}
- name: service-account
  # What automounting would mount, for the mirror alone. The kubelet renews the token.
  projected:
    defaultMode: 288
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
{{- end }}
{{- if $v.history.url }}
- name: history-cache
  # A node that runs out of disk evicts pods. Space for files that are being written is beside the cache.
  emptyDir:
    sizeLimit: "{{ div (mul (include "tidings.bytes" $v.history.cacheSize | int64) 5) 4194304 }}Mi"
{{- end }}
{{- if include "tidings.history.directory" . }}
- name: history
  persistentVolumeClaim:
    claimName: {{ $v.history.volume.existingClaim | quote }}
{{- end }}
{{- with $v.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "tidings.volumeMounts" -}}
{{- $v := .Values -}}
- name: tls
  mountPath: /etc/tidings/tls
  readOnly: true
{{- if and $v.etcd.tls.existingSecret (not $v.etcd.trial.enabled) }}
- name: etcd
  mountPath: /etc/tidings/etcd
  readOnly: true
{{- end }}
{{- if $v.tokens.existingSecret }}
- name: tokens
  mountPath: /etc/tidings/tokens
  readOnly: true
{{- end }}
{{- if $v.clientCA.existingConfigMap }}
- name: client-ca
  mountPath: /etc/tidings/client-ca
  readOnly: true
{{- end }}
{{- if include "tidings.hasRoles" . }}
- name: roles
  mountPath: /etc/tidings/roles
  readOnly: true
{{- end }}
{{- range $at, $one := include "tidings.clusterRoles" . | fromYamlArray }}
- name: cluster-roles-{{ $at }}
  mountPath: "/etc/tidings/cluster-roles/clusters/{{ $one.cluster }}"
  readOnly: true
{{- end }}
{{- if include "tidings.hasConfig" . }}
- name: config
  mountPath: /etc/tidings/config
  readOnly: true
{{- end }}
{{- if include "tidings.usesServiceAccount" . }}
- name: service-account
  mountPath: /etc/tidings/service-account
  readOnly: true
{{- end }}
{{- if $v.history.url }}
- name: history-cache
  mountPath: /var/cache/tidings
{{- end }}
{{- with include "tidings.history.directory" . }}
- name: history
  mountPath: {{ . | quote }}
{{- end }}
{{- with $v.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
