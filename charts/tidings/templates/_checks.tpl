{{/*
Combinations that cannot work fail here, with what to do instead. What a single value may be is in
values.schema.json.
*/}}
{{- define "tidings.checks" -}}
{{- $v := .Values -}}
{{- $mistakes := concat
      (include "tidings.checks.etcd" . | fromYamlArray)
      (include "tidings.checks.durations" . | fromYamlArray)
      (include "tidings.checks.resources" . | fromYamlArray)
      (include "tidings.checks.history" . | fromYamlArray)
      (include "tidings.checks.tls" . | fromYamlArray)
      (include "tidings.checks.clusters" . | fromYamlArray)
      (include "tidings.checks.files" . | fromYamlArray)
      (include "tidings.checks.names" . | fromYamlArray)
      (include "tidings.checks.monitoring" . | fromYamlArray)
      (include "tidings.checks.service" . | fromYamlArray)
      (include "tidings.checks.replicas" . | fromYamlArray)
      (include "tidings.checks.pod" . | fromYamlArray)
      (include "tidings.checks.args" . | fromYamlArray) -}}
{{- if $mistakes -}}
{{- fail (printf "\n\nThese values cannot work:\n\n- %s\n" (join "\n- " $mistakes)) -}}
{{- end -}}
{{- end -}}

{{- define "tidings.checks.etcd" -}}
{{- $found := list -}}
{{- $etcd := .Values.etcd -}}
{{- $secure := 0 -}}
{{- $wrong := list -}}
{{- range $etcd.endpoints -}}
{{- if hasPrefix "https://" . -}}{{- $secure = add1 $secure -}}{{- end -}}
{{- if not (regexMatch "^https?://" .) -}}
{{- $wrong = append $wrong (printf "etcd.endpoints: %s is not a URL: write http://%s or https://%s" . . .) -}}
{{- else if not (regexMatch "^https?://[^/,\\s\"\\\\]+$" .) -}}
{{- $wrong = append $wrong (printf "etcd.endpoints: %s is not the URL of one member: write scheme, host and port, such as https://etcd-0:2379" .) -}}
{{- end -}}
{{- end -}}
{{- if $etcd.trial.enabled -}}
{{- if $etcd.endpoints -}}
{{- $found = append $found "etcd.endpoints and etcd.trial.enabled are both set: remove one of them" -}}
{{- end -}}
{{- if not $etcd.trial.image -}}
{{- $found = append $found "etcd.trial.image is missing: set it to an image of etcd 3.5.28 or newer. A cluster made by kubeadm, kind or minikube has one: kubectl -n kube-system get pods -l component=etcd -o jsonpath='{.items[0].spec.containers[0].image}'" -}}
{{- end -}}
{{- $space := include "tidings.etcd.space" $etcd.trial.quota | int64 -}}
{{- if and $etcd.trial.persistence.enabled (lt (include "tidings.bytes" $etcd.trial.persistence.size | int64) $space) -}}
{{- $found = append $found (printf "etcd.trial.persistence.size=%s is too small: it must be at least three times etcd.trial.quota=%s, since etcd writes a second file when it is defragmented" $etcd.trial.persistence.size $etcd.trial.quota) -}}
{{- end -}}
{{- else if not $etcd.endpoints -}}
{{- $found = append $found "etcd.endpoints is empty: set it to the URLs of your etcd (--set 'etcd.endpoints={https://etcd-0:2379,https://etcd-1:2379}' --set etcd.tls.existingSecret=NAME), or, for a trial whose events may be lost, --set etcd.trial.enabled=true --set etcd.trial.image=IMAGE" -}}
{{- else if $wrong -}}
{{- $found = concat $found $wrong -}}
{{- else -}}
{{- if and (gt (int $secure) 0) (lt (int $secure) (len $etcd.endpoints)) -}}
{{- $found = append $found "etcd.endpoints has http and https: use one of them for all members" -}}
{{- end -}}
{{- if and (gt (int $secure) 0) (not $etcd.tls.existingSecret) -}}
{{- $found = append $found "etcd.tls.existingSecret is missing: with https, name a Secret with ca.crt, tls.crt and tls.key" -}}
{{- end -}}
{{- if and (eq (int $secure) 0) $etcd.tls.existingSecret -}}
{{- $found = append $found "etcd.tls.existingSecret is set, but etcd.endpoints are http: use https" -}}
{{- end -}}
{{- end -}}
{{- if and $etcd.tls.certFile (not $etcd.tls.keyFile) -}}
{{- $found = append $found "etcd.tls.keyFile is empty: a client certificate needs its key" -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.history" -}}
{{- $found := list -}}
{{- $history := .Values.history -}}
{{- $url := $history.url -}}
{{- $given := list -}}
{{- range $name := list "region" "endpoint" "existingSecret" -}}
{{- if index $history.s3 $name -}}{{- $given = append $given (printf "history.s3.%s" $name) -}}{{- end -}}
{{- end -}}
{{- if hasPrefix "s3://" $url -}}
{{- if not (regexMatch "^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_=+~-][A-Za-z0-9_=+~.-]*)*/?$" $url) -}}
{{- $found = append $found (printf "history.url=%s is not a bucket: write such as s3://my-bucket/tidings" $url) -}}
{{- end -}}
{{- $given = list -}}
{{- else if hasPrefix "file:///" $url -}}
{{- if not (regexMatch "^file://(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+/?$" $url) -}}
{{- $found = append $found (printf "history.url=%s is not a directory: write such as file:///var/lib/tidings/history" $url) -}}
{{- end -}}
{{- if not $history.volume.existingClaim -}}
{{- $found = append $found "history.volume.existingClaim is missing: a history in a directory needs a volume that outlives the pods" -}}
{{- end -}}
{{- else if $url -}}
{{- $found = append $found (printf "history.url=%s is not known: write s3://my-bucket/tidings or file:///var/lib/tidings/history" (regexReplaceAll "://[^/@]*@" $url "://…@")) -}}
{{- end -}}
{{- if and $history.volume.existingClaim (not (hasPrefix "file://" $url)) -}}
{{- $given = append $given "history.volume.existingClaim" -}}
{{- end -}}
{{- range $given -}}
{{- $found = append $found (printf "%s is set, but history.url is %s: it has no effect" . (default "empty" $url)) -}}
{{- end -}}
{{- range $name, $least := dict "cacheSize" "256Mi" "readerMemory" "128Mi" -}}
{{- if lt (include "tidings.bytes" (index $history $name) | int64) (include "tidings.bytes" $least | int64) -}}
{{- $found = append $found (printf "history.%s=%s is too small: write %s or more" $name (index $history $name) $least) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.tls" -}}
{{- $found := list -}}
{{- $tls := .Values.tls -}}
{{- if and (eq $tls.type "existingSecret") (not $tls.existingSecret) -}}
{{- $found = append $found "tls.existingSecret is missing: tls.type=existingSecret needs the name of a Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if and (ne $tls.type "existingSecret") $tls.existingSecret -}}
{{- $found = append $found (printf "tls.existingSecret is set, but tls.type is %s: set tls.type=existingSecret" $tls.type) -}}
{{- end -}}
{{- if and (eq $tls.type "certManager") (not $tls.certManager.issuerRef.name) -}}
{{- $found = append $found "tls.certManager.issuerRef.name is missing: name the Issuer or ClusterIssuer that signs the certificate" -}}
{{- end -}}
{{- $times := $tls.certManager -}}
{{- if and $times.duration $times.renewBefore (ge (include "tidings.nanoseconds" $times.renewBefore | int64) (include "tidings.nanoseconds" $times.duration | int64)) -}}
{{- $found = append $found (printf "tls.certManager.renewBefore=%s must be less than tls.certManager.duration=%s" $times.renewBefore $times.duration) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.monitoring" -}}
{{- $found := list -}}
{{- $metrics := .Values.monitoring.serviceMonitor -}}
{{- $isOpen := true -}}
{{- range $path := list "/metrics" "/metrics/slis" -}}
{{- if not (include "tidings.isOpen" (dict "path" $path "openPaths" $.Values.openPaths)) -}}{{- $isOpen = false -}}{{- end -}}
{{- end -}}
{{- if and $metrics.enabled (not $metrics.tokenSecret.name) (not $isOpen) -}}
{{- $found = append $found "monitoring.serviceMonitor.tokenSecret.name is missing: Prometheus needs a token of a user with the role system:monitoring, or /metrics* in openPaths, which lets everyone read /metrics and /metrics/slis" -}}
{{- end -}}
{{- if gt (include "tidings.nanoseconds" $metrics.scrapeTimeout | int64) (include "tidings.nanoseconds" $metrics.interval | int64) -}}
{{- $found = append $found (printf "monitoring.serviceMonitor.scrapeTimeout=%s is longer than monitoring.serviceMonitor.interval=%s: Prometheus refuses that" $metrics.scrapeTimeout $metrics.interval) -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* A label that is written twice is refused, and another value in the selector would find no pod. */}}
{{- define "tidings.checks.names" -}}
{{- $found := list -}}
{{- $v := .Values -}}
{{- $name := include "tidings.fullname" . -}}
{{- if not (regexMatch "^[a-z]" $name) -}}
{{- $found = append $found (printf "%s is the name of the Service, which must begin with a letter: set fullnameOverride" $name) -}}
{{- end -}}
{{- $own := keys (include "tidings.selectorLabels" . | fromYaml) (include "tidings.chartLabels" . | fromYaml) -}}
{{- $places := dict "commonLabels" $v.commonLabels "podLabels" $v.podLabels -}}
{{- range $kind := list "serviceMonitor" "prometheusRule" "dashboard" -}}
{{- $_ := set $places (printf "monitoring.%s.labels" $kind) (dig "labels" dict (index $v.monitoring $kind)) -}}
{{- end -}}
{{- range $place, $labels := $places -}}
{{- range $label, $_ := $labels -}}
{{- if has $label $own -}}
{{- $found = append $found (printf "%s: the chart sets the label %s itself" $place $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if hasKey $v.podAnnotations "tidings.dev/tracing" -}}
{{- $found = append $found "podAnnotations: the chart sets tidings.dev/tracing itself" -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.clusters" -}}
{{- $found := list -}}
{{- $names := list -}}
{{- $own := .Values.ownCluster -}}
{{- if include "tidings.usesServiceAccount" . -}}
{{- $names = append $names .Values.clusterName -}}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) -}}
{{- $found = append $found "serviceAccount.create is false, so ownCluster needs serviceAccount.name: otherwise every pod with the account default would have the rights" -}}
{{- else if and (not .Values.rbac.create) (not .Values.serviceAccount.name) -}}
{{- $found = append $found "rbac.create is false, so ownCluster needs serviceAccount.name: the account to which you have given the roles" -}}
{{- end -}}
{{- end -}}
{{- if and (eq $own.mirror.deletes "explicit") (not $own.mirror.originEventTTL) -}}
{{- $found = append $found "ownCluster.mirror.originEventTTL is missing: deletes=explicit needs the --event-ttl of the cluster's API server, 1h if it is not set" -}}
{{- end -}}
{{- range .Values.clusters -}}
{{- if has .name $names -}}
{{- $found = append $found (printf "clusters: %s is there twice%s" .name (eq .name $.Values.clusterName | ternary ": it is the clusterName, which ownCluster configures" "")) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if and (not .kubeconfigSecret) (or (hasKey . "mirror") .context (eq (default "rbac" .authorization) "origin")) -}}
{{- $found = append $found (printf "clusters: %s needs kubeconfigSecret: context, mirror and authorization=origin need its kubeconfig" .name) -}}
{{- end -}}
{{- if and (eq (dig "mirror" "deletes" "never" .) "explicit") (not (dig "mirror" "originEventTTL" "" .)) -}}
{{- $found = append $found (printf "clusters: %s needs mirror.originEventTTL: deletes=explicit needs the --event-ttl of the cluster's API server" .name) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.files" -}}
{{- $found := list -}}
{{- $v := .Values -}}
{{- if and $v.roles.existingConfigMap $v.roles.files -}}
{{- $found = append $found "roles.existingConfigMap and roles.files are both set: remove one of them" -}}
{{- end -}}
{{- range $name, $roles := $v.roles.clusters -}}
{{- if eq (not $roles.existingConfigMap) (not $roles.files) -}}
{{- $found = append $found (printf "roles.clusters.%s needs one of existingConfigMap and files" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "retention" "audit" -}}
{{- $file := index $v $name -}}
{{- if and $file.policy $file.existingConfigMap -}}
{{- $found = append $found (printf "%s.policy and %s.existingConfigMap are both set: remove one of them" $name $name) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.replicas" -}}
{{- $found := list -}}
{{- $v := .Values -}}
{{- $replicas := int $v.replicas -}}
{{- $budget := $v.podDisruptionBudget -}}
{{- $min := include "tidings.text" $budget.minAvailable -}}
{{- $max := include "tidings.text" $budget.maxUnavailable -}}
{{- if $budget.enabled -}}
{{- if and $min $max -}}
{{- $found = append $found "podDisruptionBudget has minAvailable and maxUnavailable: set one of them to an empty text" -}}
{{- else if not (or $min $max) -}}
{{- $found = append $found "podDisruptionBudget has neither minAvailable nor maxUnavailable: set one of them" -}}
{{- end -}}
{{- /* Kubernetes rounds a percentage up. */ -}}
{{- $staying := trimSuffix "%" $min | int -}}
{{- if hasSuffix "%" $min -}}{{- $staying = div (add (mul $staying $replicas) 99) 100 | int -}}{{- end -}}
{{- if ge $staying $replicas -}}
{{- $found = append $found (printf "podDisruptionBudget.minAvailable=%s with replicas=%d: no node with a replica could ever be drained. It must be less than replicas, also when a percentage is rounded up" $min $replicas) -}}
{{- end -}}
{{- if include "tidings.isZero" $budget.maxUnavailable -}}
{{- $found = append $found (printf "podDisruptionBudget.maxUnavailable=%s: no node with a replica could ever be drained" $max) -}}
{{- end -}}
{{- end -}}
{{- $limits := default dict $v.updateStrategy.rollingUpdate -}}
{{- if and (eq $v.updateStrategy.type "RollingUpdate") (include "tidings.isZero" $limits.maxSurge) (include "tidings.isZero" $limits.maxUnavailable) -}}
{{- $found = append $found "updateStrategy.rollingUpdate: maxSurge and maxUnavailable are both 0: no pod could ever be replaced" -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* "true" for 0 and 0%, not for null. */}}
{{- define "tidings.isZero" -}}
{{- if regexMatch "^0+%?$" (include "tidings.text" .) -}}true{{- end -}}
{{- end -}}

{{- define "tidings.checks.service" -}}
{{- $found := list -}}
{{- $v := .Values -}}
{{- if and $v.service.nodePort (eq $v.service.type "ClusterIP") -}}
{{- $found = append $found "service.nodePort is set, but service.type is ClusterIP: use NodePort or LoadBalancer" -}}
{{- end -}}
{{- if and $v.service.loadBalancerSourceRanges (ne $v.service.type "LoadBalancer") -}}
{{- $found = append $found "service.loadBalancerSourceRanges is set, but service.type is not LoadBalancer" -}}
{{- end -}}
{{- range list "/livez" "/readyz" -}}
{{- if not (include "tidings.isOpen" (dict "path" . "openPaths" $v.openPaths)) -}}
{{- $found = append $found (printf "openPaths must have %s: the kubelet has no credentials, and would restart every pod" .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* Lists of the pod in which Kubernetes wants no entry twice: those of the chart and those of the values. */}}
{{- define "tidings.checks.pod" -}}
{{- $found := list -}}
{{- $v := .Values -}}
{{- $env := empty $v.nodeOptions | ternary list (list "NODE_OPTIONS") -}}
{{- range include "tidings.history.env" . | fromYamlArray -}}{{- $env = append $env .name -}}{{- end -}}
{{- range $v.extraEnv -}}
{{- if has .name $env -}}
{{- $found = append $found (printf "extraEnv: %s is there twice%s" .name (eq .name "NODE_OPTIONS" | ternary ": use nodeOptions" (hasPrefix "AWS_" .name | ternary ": use history.s3" ""))) -}}
{{- end -}}
{{- $env = append $env .name -}}
{{- end -}}
{{- $volumes := list -}}
{{- range include "tidings.volumes" . | fromYamlArray -}}
{{- if has .name $volumes -}}
{{- $found = append $found (printf "extraVolumes: %s is there twice: the chart has such a volume itself, or it is repeated" .name) -}}
{{- end -}}
{{- $volumes = append $volumes .name -}}
{{- end -}}
{{- $folders := list -}}
{{- range include "tidings.volumeMounts" . | fromYamlArray -}}
{{- $folder := trimSuffix "/" .mountPath -}}
{{- if has $folder $folders -}}
{{- $found = append $found (printf "extraVolumeMounts: %s is there twice" $folder) -}}
{{- end -}}
{{- $folders = append $folders $folder -}}
{{- if not (has .name $volumes) -}}
{{- $found = append $found (printf "extraVolumeMounts: there is no volume %s: add it to extraVolumes" .name) -}}
{{- end -}}
{{- end -}}
{{- $spreads := list -}}
{{- range $v.topologySpreadConstraints -}}
{{- $spread := printf "%s with %s" .topologyKey .whenUnsatisfiable -}}
{{- if has $spread $spreads -}}
{{- $found = append $found (printf "topologySpreadConstraints: %s is there twice" $spread) -}}
{{- end -}}
{{- $spreads = append $spreads $spread -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.args" -}}
{{- $found := list -}}
{{- /* --ui is there only when it is off, and those of history when it is on: they need volumes. */ -}}
{{- $own := list "ui" "history" "history-cache-dir" "history-cache-bytes" "history-reader-memory" -}}
{{- range include "tidings.ownArgs" . | fromYamlArray -}}{{- $own = append $own (include "tidings.flagName" .) -}}{{- end -}}
{{- $known := regexSplit "\\s+" (trim (.Files.Get "files/flags.txt")) -1 -}}
{{- $isOwnVersion := and (not .Values.image.digest) (has .Values.image.tag (list "" .Chart.AppVersion)) -}}
{{- range .Values.extraArgs -}}
{{- $name := include "tidings.flagName" . -}}
{{- if has $name $own -}}
{{- $found = append $found (printf "extraArgs: the chart sets --%s itself: see the comments in values.yaml" $name) -}}
{{- else if and $isOwnVersion (not (has $name $known)) -}}
{{- $found = append $found (printf "extraArgs: tidings %s has no flag --%s" $.Chart.AppVersion $name) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}
