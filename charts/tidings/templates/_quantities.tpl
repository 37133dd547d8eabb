{{/* "true" for a Go duration, which is all that flags and cert-manager take. */}}
{{- define "tidings.isDuration" -}}
{{- if regexMatch "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h))+$" . -}}true{{- end -}}
{{- end -}}

{{/* A Go duration as nanoseconds. */}}
{{- define "tidings.nanoseconds" -}}
{{- $units := dict "ns" 1 "us" 1000 "ms" 1000000 "s" 1000000000 "m" 60000000000 "h" 3600000000000 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9.]+[a-z]+" . -1 -}}
{{- $sum = addf $sum (mulf (regexFind "^[0-9.]+" .) (get $units (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{- int64 $sum -}}
{{- end -}}

{{/* A number with Mi, Gi or Ti, as bytes. */}}
{{- define "tidings.bytes" -}}
{{- include "tidings.quantity" . | float64 | int64 -}}
{{- end -}}

{{/* A quantity of Kubernetes as a number with three decimals; empty for what is none. */}}
{{- define "tidings.quantity" -}}
{{- $units := dict "" 1 "m" 0.001 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "P" 1000000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 -}}
{{- $text := include "tidings.text" . -}}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+|m|k|[MGTP]|[KMGTP]i)?$" $text -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" $text -}}
{{- mulf (float64 $number) (get $units (trimPrefix $number $text)) | printf "%.3f" -}}
{{- end -}}
{{- end -}}

{{/* The MiB of heap that the options of Node allow; 0 without --max-old-space-size. Three semi-spaces are the young part. */}}
{{- define "tidings.heapMiB" -}}
{{- $sizes := dict -}}
{{- range regexFindAll "--max[-_](old|semi)[-_]space[-_]size=[0-9]+" .Values.nodeOptions -1 -}}
{{- $_ := set $sizes (regexFind "old|semi" .) (regexFind "[0-9]+$" . | int64) -}}
{{- end -}}
{{- hasKey $sizes "old" | ternary (add (dig "old" 0 $sizes) (mul 3 (dig "semi" 0 $sizes))) 0 -}}
{{- end -}}
