import { pluralOf } from '../../api/kind-words.ts'
import type { RegardedKind } from '../../storage/event-fields.ts'
import type { GroupDiscovery, ResourceDiscovery } from './aggregated-discovery.ts'

/**
 * Kinds of core/v1 that events regard. They are listed in discovery but not served: they have no
 * verbs, so clients ignore them when they look for resources to use. They are listed because
 * `kubectl events --for pod/web-0` looks up the kind and version of a pod in discovery, and
 * otherwise fails with an unknown resource type.
 */
export const regardedKinds: readonly ResourceDiscovery[] = [
  regarded({ kind: 'ConfigMap', shortNames: ['cm'] }),
  regarded({ kind: 'Endpoints', name: 'endpoints', shortNames: ['ep'] }),
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

/**
 * Adds the kinds that stored events regard to the groups, each with its versions. These kinds have
 * no verbs either. Whether their objects have a namespace is unknown here, and makes no difference.
 */
export function withRegarded(
  core: GroupDiscovery,
  groups: readonly GroupDiscovery[],
  kinds: readonly RegardedKind[],
): { inCore: GroupDiscovery; inGroups: readonly (readonly GroupDiscovery[])[] } {
  const versions = new Map<string, Map<string, ResourceDiscovery[]>>()
  for (const { name, version, resources } of [core, ...groups]) {
    versions.set(name, new Map([[version, [...resources]]]))
  }
  for (const { group, version, kind } of kinds) {
    const ofGroup = versions.get(group) ?? new Map<string, ResourceDiscovery[]>()
    const resources = ofGroup.get(version) ?? []
    // A group that is served has one version, and clients must not look for another.
    const isServed = group === core.name || groups.some(({ name }) => name === group)
    if (isServed && !ofGroup.has(version)) continue
    versions.set(group, ofGroup.set(version, resources))
    const shortName = SHORT_NAMES[`${group}/${kind}`]
    const resource = regarded({
      kind,
      name: pluralOf(kind.toLowerCase()),
      ...(shortName !== undefined && { shortNames: [shortName] }),
    })
    if (!resources.some(({ kind: known, name }) => known === kind || name === resource.name)) {
      resources.push(resource)
    }
  }
  const all = [...versions].map(([name, ofGroup]) =>
    [...ofGroup]
      .sort(([one], [other]) => compareVersions(other, one))
      .map(([version, resources]): GroupDiscovery => ({ name, version, resources })),
  )
  return {
    inCore: all.flat().find(({ name }) => name === core.name) ?? core,
    inGroups: all.filter(([first]) => first?.name !== core.name),
  }
}

/** The short names of Kubernetes' kinds, keyed by group and kind. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  'apps/DaemonSet': 'ds',
  'apps/Deployment': 'deploy',
  'apps/ReplicaSet': 'rs',
  'apps/StatefulSet': 'sts',
  'autoscaling/HorizontalPodAutoscaler': 'hpa',
  'batch/CronJob': 'cj',
  'certificates.k8s.io/CertificateSigningRequest': 'csr',
  'networking.k8s.io/Ingress': 'ing',
  'networking.k8s.io/NetworkPolicy': 'netpol',
  'policy/PodDisruptionBudget': 'pdb',
}

/** Later versions are greater, and stable versions are greater than beta and alpha ones. */
function compareVersions(one: string, other: string): number {
  const [left, right] = [one, other].map((version) => {
    const [, major = '0', stage = 'z', minor = '0'] =
      /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? []
    return { stage, numbers: Number(major) * 1000 + Number(minor) }
  })
  if (left === undefined || right === undefined) return 0
  if (left.stage !== right.stage) return left.stage < right.stage ? -1 : 1
  return left.numbers - right.numbers
}
