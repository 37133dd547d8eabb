import type { ResourceDiscovery } from './aggregated-discovery.ts'

/**
 * Kinds of core/v1 that events are about. They are not served: there is nothing that can be done with
 * them, so they come without verbs, and clients leave them out when they look for what they can use.
 * But `kubectl events --for pod/web-0` asks discovery which kind and version a pod is, and would
 * otherwise say that there is no such thing.
 */
export const regardedKinds: readonly ResourceDiscovery[] = [
  regarded({ kind: 'ConfigMap', shortNames: ['cm'] }),
  regarded({ kind: 'Endpoints', name: 'endpoints', shortNames: ['ep'] }),
  regarded({ kind: 'Namespace', shortNames: ['ns'], namespaced: false }),
  regarded({ kind: 'Node', shortNames: ['no'], namespaced: false }),
  regarded({ kind: 'PersistentVolume', shortNames: ['pv'], namespaced: false }),
  regarded({ kind: 'PersistentVolumeClaim', shortNames: ['pvc'] }),
  regarded({ kind: 'Pod', shortNames: ['po'] }),
  regarded({ kind: 'ReplicationController', shortNames: ['rc'] }),
  regarded({ kind: 'Secret' }),
  regarded({ kind: 'Service', shortNames: ['svc'] }),
  regarded({ kind: 'ServiceAccount', shortNames: ['sa'] }),
]

function regarded(own: { readonly kind: string } & Partial<ResourceDiscovery>): ResourceDiscovery {
  const singularName = own.kind.toLowerCase()
  return { name: `${singularName}s`, singularName, namespaced: true, verbs: [], ...own }
}
