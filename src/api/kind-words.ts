/**
 * The short names that kubectl accepts for the kinds that events are about: `po`, `pods` and `pod`
 * all mean `Pod`.
 */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  configmap: 'cm',
  cronjob: 'cj',
  daemonset: 'ds',
  deployment: 'deploy',
  endpoints: 'ep',
  horizontalpodautoscaler: 'hpa',
  ingress: 'ing',
  job: '',
  namespace: 'ns',
  networkpolicy: 'netpol',
  node: 'no',
  persistentvolume: 'pv',
  persistentvolumeclaim: 'pvc',
  pod: 'po',
  poddisruptionbudget: 'pdb',
  replicaset: 'rs',
  replicationcontroller: 'rc',
  secret: '',
  service: 'svc',
  serviceaccount: 'sa',
  statefulset: 'sts',
}

const KINDS: ReadonlyMap<string, string> = new Map(
  Object.entries(SHORT_NAMES).flatMap(([kind, short]) => [
    [short, kind] as const,
    [pluralOf(kind), kind] as const,
  ]),
)

/** Returns the kind in lower case. An unknown word is taken for the kind itself. */
export function kindOfWord(word: string): string {
  const lower = word.toLowerCase()
  return KINDS.get(lower) ?? lower
}

/** The plural form that kubectl guesses. */
export function pluralOf(singular: string): string {
  if (singular.endsWith('s')) return `${singular}es`
  return singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`
}
