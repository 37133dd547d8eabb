const PATHS = {
  Pod: '/api/v1/namespaces/shop/pods',
  ReplicaSet: '/apis/apps/v1/namespaces/shop/replicasets',
  Job: '/apis/batch/v1/namespaces/shop/jobs',
} as const
const template = {
  metadata: { labels: { app: 'web' } },
  spec: { restartPolicy: 'Never', containers: [{ name: 'app', image: 'app' }] },
}
const SPECS = {
  Pod: template.spec,
  ReplicaSet: {
    selector: { matchLabels: { app: 'web' } },
    template: { ...template, spec: { ...template.spec, restartPolicy: 'Always' } },
  },
  Job: { template },
} as const

export interface OwnedObject {
  readonly path: string
  readonly body: object
}

/** An object in the namespace `shop` that a Kubernetes API server accepts; `owner` is `Kind/name`. */
export function ownedObject(kind: keyof typeof PATHS, name: string, owner?: string): OwnedObject {
  const [ownerKind, ownerName] = owner?.split('/') ?? []
  const controller = {
    kind: ownerKind,
    name: ownerName,
    apiVersion: 'apps/v1',
    uid: `uid-${name}`,
    controller: true,
  }
  const ownerReferences = owner === undefined ? [] : [controller]
  return { path: PATHS[kind], body: { metadata: { name, ownerReferences }, spec: SPECS[kind] } }
}
