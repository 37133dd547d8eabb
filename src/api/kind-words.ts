/**
 * The short names that kubectl accepts for the kinds that events are about: `po`, `pods` and `pod`
 * all mean `Pod`.
 */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  ConfigMap: 'cm',
  CronJob: 'cj',
  DaemonSet: 'ds',
  Deployment: 'deploy',
  Endpoints: 'ep',
  HorizontalPodAutoscaler: 'hpa',
  Ingress: 'ing',
  Job: 'job',
  Namespace: 'ns',
  NetworkPolicy: 'netpol',
  Node: 'no',
  PersistentVolume: 'pv',
  PersistentVolumeClaim: 'pvc',
  Pod: 'po',
  PodDisruptionBudget: 'pdb',
  ReplicaSet: 'rs',
  ReplicationController: 'rc',
  Secret: 'secret',
  Service: 'svc',
  ServiceAccount: 'sa',
  StatefulSet: 'sts',
}

const KINDS: ReadonlyMap<string, string> = new Map(
  Object.entries(SHORT_NAMES).flatMap(([kind, short]) => {
    const lower = kind.toLowerCase()
    return [short, lower, pluralOf(lower)].map((word) => [word, kind] as const)
  }),
)

/** The kind as events contain it; undefined for an unknown word. */
export function kindNameOf(word: string): string | undefined {
  return KINDS.get(word.toLowerCase())
}

/** Returns the kind in lower case. An unknown word is taken for the kind itself. */
export function kindOfWord(word: string): string {
  return (kindNameOf(word) ?? word).toLowerCase()
}

/** The plural form that kubectl guesses. */
export function pluralOf(singular: string): string {
  if (singular.endsWith('s')) return `${singular}es`
  return singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`
}
