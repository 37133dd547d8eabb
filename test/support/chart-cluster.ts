/** What tests of the chart need of a real API server. */

import type { Manifest } from './chart.ts'
import { ChartReplica, made } from './chart-replica.ts'
import { eventually } from './eventually.ts'
import type { KubeApiserver } from './kube-apiserver.ts'

/** Their real definitions are not part of Kubernetes, so only their names are checked. */
const CUSTOM_RESOURCES = [
  ['cert-manager.io', 'certificates', 'Certificate'],
  ['monitoring.coreos.com', 'servicemonitors', 'ServiceMonitor'],
  ['monitoring.coreos.com', 'prometheusrules', 'PrometheusRule'],
] as const
const ESTABLISHED_MS_MAX = 20_000
const OWN_KUBECONFIG = 'own-cluster.kubeconfig'

/** Resolves when the custom resources of the chart are served. */
export async function defineCustomResources(kube: KubeApiserver): Promise<void> {
  const schema = {
    openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  }
  for (const [group, plural, kind] of CUSTOM_RESOURCES) {
    await kube.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    })
  }
  const areServed = async () => {
    const paths = CUSTOM_RESOURCES.map(([group, plural]) => `/apis/${group}/v1/${plural}`)
    const found = await Promise.all(paths.map((path) => kube.ask('GET', path)))
    return found.every(({ status }) => status === 200)
  }
  await eventually('custom resources are served', areServed, ESTABLISHED_MS_MAX)
}

/** A token of a service account. */
export async function accountToken(
  kube: KubeApiserver,
  namespace: string,
  name: string,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`
  const issued = await kube.create(path, { spec: { expirationSeconds: 3600 } })
  return (issued['status'] as { readonly token: string }).token
}

/**
 * A replica of a release that has `ownCluster`, with this API server as its cluster and the token of
 * its service account. Only the address of the API server differs from that in a cluster.
 */
export async function startInCluster(
  kube: KubeApiserver,
  manifests: readonly Manifest[],
  { namespace, etcdServers }: { readonly namespace: string; readonly etcdServers: string },
): Promise<ChartReplica> {
  const config = made(manifests)['tidings-config'] ?? {}
  const address = String(config[OWN_KUBECONFIG]).replace(
    'kubernetes.default.svc',
    `127.0.0.1:${kube.port}`,
  )
  return ChartReplica.start(manifests, {
    etcdServers,
    given: {
      'tidings-config': { ...config, [OWN_KUBECONFIG]: address },
      'service-account': { token: await accountToken(kube, namespace, 'tidings') },
      'kube-root-ca.crt': { 'ca.crt': kube.ca },
    },
  })
}
