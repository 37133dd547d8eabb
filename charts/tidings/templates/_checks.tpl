{{/*
Combinations that cannot work fail here, with what to do instead. What a single value may be is in
values.schema.json.
*/}}
{{- define "tidings.checks" -}}
{{- $v := .Values -}}
{{- $mistakes := concat
      (include "tidings.checks.etcd" . | fromYamlArray)
      (include "tidings.checks.tls" . | fromYamlArray)
      (include "tidings.checks.clusters" . | fromYamlArray)
      (include "tidings.checks.files" . | fromYamlArray)
      (include "tidings.checks.pods" . | fromYamlArray)
      (include "tidings.checks.args" . | fromYamlArray) -}}
{{- if $mistakes -}}
{{- fail (printf "\n\nThese values cannot work:\n\n- %s\n" (join "\n- " $mistakes)) -}}
{{- end -}}
{{- end -}}

{{- define "tidings.checks.etcd" -}}
{{- $found := list -}}
{{- $etcd := .Values.etcd -}}
{{- $secure := 0 -}}
{{- range $etcd.endpoints -}}{{- if hasPrefix "https://" . -}}{{- $secure = add1 $secure -}}{{- end -}}{{- end -}}
{{- if $etcd.trial.enabled -}}
{{- if $etcd.endpoints -}}
{{- $found = append $found "etcd.endpoints and etcd.trial.enabled are both set: remove one of them" -}}
{{- end -}}
{{- if not $etcd.trial.image -}}
{{- $found = append $found "etcd.trial.image is missing: set it to an image of etcd 3.5.28 or newer. A cluster made by kubeadm, kind or minikube has one: kubectl -n kube-system get pods -l component=etcd -o jsonpath='{.items[0].spec.containers[0].image}'" -}}
{{- end -}}
{{- else if not $etcd.endpoints -}}
{{- $found = append $found "etcd.endpoints is empty: set it to the URLs of your etcd (--set 'etcd.endpoints={https://etcd-0:2379,https://etcd-1:2379}' --set etcd.tls.existingSecret=NAME), or, for a trial whose events may be lost, --set etcd.trial.enabled=true --set etcd.trial.image=IMAGE" -}}
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
{{- $metrics := .Values.monitoring.serviceMonitor -}}
{{- if and $metrics.enabled (not $metrics.tokenSecret.name) (not (has "/metrics" .Values.openPaths)) -}}
{{- $found = append $found "monitoring.serviceMonitor.tokenSecret.name is missing: Prometheus needs a token of a user with the role system:monitoring, or /metrics in openPaths, which lets everyone read it" -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.clusters" -}}
{{- $found := list -}}
{{- $names := list -}}
{{- $own := .Values.ownCluster -}}
{{- if include "tidings.usesServiceAccount" . -}}
{{- $names = append $names .Values.clusterName -}}
{{- if and (not .Values.rbac.create) (not .Values.serviceAccount.name) -}}
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

{{- define "tidings.checks.pods" -}}
{{- $found := list -}}
{{- $v := .Values -}}
{{- $budget := $v.podDisruptionBudget -}}
{{- $min := toString $budget.minAvailable -}}
{{- $max := toString $budget.maxUnavailable -}}
{{- if $budget.enabled -}}
{{- if and $min $max -}}
{{- $found = append $found "podDisruptionBudget has minAvailable and maxUnavailable: set one of them to an empty text" -}}
{{- else if not (or $min $max) -}}
{{- $found = append $found "podDisruptionBudget has neither minAvailable nor maxUnavailable: set one of them" -}}
{{- end -}}
{{- if or (eq $min "100%") (and (regexMatch "^[0-9]+$" $min) (ge (atoi $min) (int $v.replicas))) -}}
{{- $found = append $found (printf "podDisruptionBudget.minAvailable=%s with replicas=%d: no node with a replica could ever be drained. It must be less than replicas" $min (int $v.replicas)) -}}
{{- end -}}
{{- if has $max (list "0" "0%") -}}
{{- $found = append $found "podDisruptionBudget.maxUnavailable=0: no node with a replica could ever be drained" -}}
{{- end -}}
{{- end -}}
{{- if and $v.service.nodePort (eq $v.service.type "ClusterIP") -}}
{{- $found = append $found "service.nodePort is set, but service.type is ClusterIP: use NodePort or LoadBalancer" -}}
{{- end -}}
{{- if and $v.service.loadBalancerSourceRanges (ne $v.service.type "LoadBalancer") -}}
{{- $found = append $found "service.loadBalancerSourceRanges is set, but service.type is not LoadBalancer" -}}
{{- end -}}
{{- range list "/livez" "/readyz" -}}
{{- if not (or (has . $v.openPaths) (has (printf "%s*" .) $v.openPaths)) -}}
{{- $found = append $found (printf "openPaths must have %s: the kubelet has no credentials, and would restart every pod" .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- define "tidings.checks.args" -}}
{{- $found := list -}}
{{- $own := list -}}
{{- range include "tidings.ownArgs" . | fromYamlArray -}}{{- $own = append $own (include "tidings.flagName" .) -}}{{- end -}}
{{- $known := regexSplit "\\s+" (trim (.Files.Get "files/flags.txt")) -1 -}}
{{- $isOwnVersion := and (not .Values.image.digest) (has .Values.image.tag (list "" .Chart.AppVersion)) -}}
{{- range .Values.extraArgs -}}
{{- $name := include "tidings.flagName" . -}}
{{- if has $name $own -}}
{{- $found = append $found (printf "extraArgs: the chart sets --%s itself, from a value of its own: see the comments in values.yaml" $name) -}}
{{- else if and $isOwnVersion (not (has $name $known)) -}}
{{- $found = append $found (printf "extraArgs: tidings %s has no flag --%s" $.Chart.AppVersion $name) -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}
