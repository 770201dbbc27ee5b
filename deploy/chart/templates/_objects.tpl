{{/* The text of one of the repository's manifests, for the namespace of the release. `make derived` copies them. */}}
{{- define "lease-webhook.source" -}}
{{- $root := index . 0 -}}
{{- $ours := $root.Release.Namespace -}}
{{- $root.Files.Get (printf "files/%s" (index . 1))
  | replace "kube-public, lease-webhook]" (printf "kube-public, %s]" $ours)
  | replace "namespace: lease-webhook\n" (printf "namespace: %s\n" $ours)
  | replace "lease-webhook.lease-webhook" (printf "lease-webhook.%s" $ours) -}}
{{- end -}}

{{/* An object as it is applied: with the labels of everything, and with the namespace unless it has none. */}}
{{- define "lease-webhook.object" -}}
{{- $root := index . 0 -}}
{{- $object := index . 1 -}}
{{- $labels := dict "app.kubernetes.io/name" "lease-webhook" "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_") -}}
{{- $_ := set $object.metadata "labels" (mustMerge (default dict $object.metadata.labels) $labels) -}}
{{- if not (has $object.kind (list "ValidatingWebhookConfiguration" "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" "MutatingAdmissionPolicy" "MutatingAdmissionPolicyBinding" "ClusterRole" "ClusterRoleBinding")) -}}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace -}}
{{- end -}}
{{- toYaml $object -}}
{{- end -}}

{{/* One of the repository's manifests, unchanged. */}}
{{- define "lease-webhook.shipped" -}}
{{- $root := index . 0 -}}
{{- range splitList "\n---\n" (include "lease-webhook.source" .) }}
---
{{ include "lease-webhook.object" (list $root (fromYaml .)) }}
{{- end -}}
{{- end -}}

{{- define "lease-webhook.image" -}}
{{- with .Values.image -}}
{{- $repository := required "image.repository is required, where your image is, built with deploy/Dockerfile: add --set image.repository=registry.example/lease-webhook" .repository -}}
{{- if .digest -}}{{ $repository }}@{{ .digest }}{{- else -}}{{ $repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* What every pod of a hook has in common. Its name is not the webhook's, whose NetworkPolicy lets nothing out. */}}
{{- define "lease-webhook.hook-pod" -}}
{{- $root := index . 0 -}}
metadata:
  labels:
    app.kubernetes.io/name: lease-webhook-hook
spec:
  serviceAccountName: {{ index . 1 }}
  restartPolicy: Never
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    seccompProfile: {type: RuntimeDefault}
  containers:
  - name: hook
    image: {{ include "lease-webhook.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    command: [/usr/local/bin/python3, -c]
    args:
    - {{ $root.Files.Get (printf "scripts/%s" (index . 2)) | toYaml | indent 6 | trim }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    resources:
      requests: {cpu: 10m, memory: 32Mi}
      limits: {memory: 128Mi}
{{- end -}}
