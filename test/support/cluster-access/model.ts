/**
 * Who may see what in which cluster, as plain data. The policy files are written from it, and the
 * expected outcome of every request is computed from it; no code of the server is used.
 */
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const HOME = 'local'
export const ALPHA = 'alpha-c1'
export const BRAVO = 'bravo-c2'
/** Has neither events nor files. */
export const GHOST = 'ghost-c3'
export const WILDCARD = '*'
const EVERY = '_all'
export const NAMESPACES = ['ops', 'shop'] as const

/** Where requests go: a prefix of the path, and the cluster that it stands for. */
export interface Place {
  readonly prefix: string
  readonly cluster: string
}

export const PLACES: readonly Place[] = [
  { prefix: '', cluster: HOME },
  ...[HOME, ALPHA, BRAVO, GHOST, WILDCARD].map((cluster) => ({
    prefix: `/clusters/${cluster}`,
    cluster,
  })),
]

export interface SeededEvent {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
  /** Text that is in every field of the event that can hold it, and in no other event. */
  readonly marker: string
}

function seeded(cluster: string, namespace: string, name: string): SeededEvent {
  const digest = createHash('sha256').update(`${cluster}/${namespace}/${name}`).digest('hex')
  return { cluster, namespace, name, marker: `mk${digest.slice(0, 16)}` }
}

/** The same namespaces and names in every cluster, and one event that exists only once. */
export const EVENTS: readonly SeededEvent[] = [
  ...[HOME, ALPHA, BRAVO].flatMap((cluster) =>
    NAMESPACES.flatMap((namespace) => ['e1', 'e2'].map((name) => seeded(cluster, namespace, name))),
  ),
  seeded(BRAVO, 'shop', 'only'),
]

/** A group of kinds that only the events of this cluster are about. */
export function kindGroup(cluster: string): string {
  return `kinds-of-${cluster}.example.com`
}

export function wireEvent({ cluster, namespace, name, marker }: SeededEvent): object {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name, labels: { mark: marker }, annotations: { mark: marker } },
    eventTime: '2026-01-02T03:04:05.678901Z',
    action: marker,
    reason: marker,
    type: 'Normal',
    note: marker,
    reportingController: `example.com/${marker}`,
    reportingInstance: marker,
    regarding: {
      apiVersion: `${kindGroup(cluster)}/v1`,
      kind: 'Thing',
      namespace,
      name: marker,
      uid: `u-${marker}`,
    },
  }
}

const READ = ['get', 'list', 'watch']
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update']

interface Grant {
  /** The folder of the policy file: '' is the root, which is that of the default cluster. */
  readonly folder: string
  readonly verbs: readonly string[]
  readonly namespace?: string
  /** The name of the only event, or of the only user that may be impersonated. */
  readonly name?: string
}

const MASTERS = 'system:masters'
export const MASTER = 'master'

/** The token of a user is its name. */
export const USERS: ReadonlyMap<string, readonly Grant[]> = new Map<string, readonly Grant[]>([
  ['nobody', []],
  ['reader-a', [{ folder: ALPHA, verbs: READ }]],
  ['editor-b', [{ folder: BRAVO, verbs: [...READ, ...WRITE] }]],
  ['writer-b', [{ folder: BRAVO, verbs: WRITE }]],
  ['shop-a', [{ folder: ALPHA, verbs: [...READ, ...WRITE], namespace: 'shop' }]],
  ['shop-all', [{ folder: EVERY, verbs: READ, namespace: 'shop' }]],
  ['one-b', [{ folder: BRAVO, verbs: READ, namespace: 'shop', name: 'e1' }]],
  // Permissions in every cluster one by one are not a permission for the wildcard.
  ['each', ['', ALPHA, BRAVO, GHOST].map((folder) => ({ folder, verbs: READ }))],
  ['reader-all', [{ folder: EVERY, verbs: READ }]],
  ['editor-all', [{ folder: EVERY, verbs: [...READ, ...WRITE] }]],
  ['home', [{ folder: '', verbs: [...READ, ...WRITE] }]],
  ['home-folder', [{ folder: HOME, verbs: READ }]],
  ['as-a', [{ folder: ALPHA, verbs: ['impersonate'] }]],
  ['as-one', [{ folder: EVERY, verbs: ['impersonate'], name: 'reader-a' }]],
  [MASTER, []],
])

/** Who sends a request, and as whom. */
export interface Sender {
  readonly user: string
  readonly as?: { readonly user: string; readonly group?: string }
}

/** Users that act as others; most of them may not, or only in one cluster. */
export const ACTORS: readonly Sender[] = [
  { user: 'as-a', as: { user: 'reader-a' } },
  { user: 'as-a', as: { user: 'editor-b' } },
  { user: 'as-a', as: { user: 'reader-all' } },
  { user: 'as-a', as: { user: 'nobody', group: MASTERS } },
  { user: 'as-one', as: { user: 'reader-a' } },
  { user: 'as-one', as: { user: 'reader-all' } },
  { user: 'as-one', as: { user: 'reader-a', group: MASTERS } },
  { user: 'reader-all', as: { user: 'editor-b' } },
  { user: MASTER, as: { user: 'shop-a' } },
]

export interface Action {
  readonly cluster: string
  readonly verb: string
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

/** Whether the sender may do this: itself, or as the user that it acts as. */
export function mayDo({ user, as }: Sender, action: Action): boolean {
  if (as === undefined) return user === MASTER || holds(user, action)
  const { cluster } = action
  const impersonates = (name: string): boolean =>
    user === MASTER || holds(user, { cluster, verb: 'impersonate', name })
  if (!impersonates(as.user)) return false
  if (as.group === undefined) return holds(as.user, action)
  return impersonates(as.group) && (as.group === MASTERS || holds(as.user, action))
}

function holds(user: string, { cluster, verb, namespace, name }: Action): boolean {
  const grants = USERS.get(user) ?? []
  return grants.some(
    (grant) =>
      appliesIn(grant, cluster) &&
      grant.verbs.includes(verb) &&
      (grant.namespace === undefined || grant.namespace === namespace) &&
      (grant.name === undefined || grant.name === name),
  )
}

function appliesIn({ folder }: Grant, cluster: string): boolean {
  return folder === EVERY || (folder === '' ? HOME : folder) === cluster
}

export const TOKENS: string = [...USERS.keys()]
  .map((user, at) => `${user},${user},${at + 1}${user === MASTER ? `,${MASTERS}` : ''}\n`)
  .join('')

/** Writes a role and a binding for each grant, in the folder that the grant says. */
export async function writePolicy(root: string): Promise<void> {
  for (const [user, grants] of USERS) {
    for (const [at, grant] of grants.entries()) {
      const folder = grant.folder === '' ? root : join(root, 'clusters', grant.folder)
      await mkdir(folder, { recursive: true })
      const items = objectsOf(user, grant)
      await writeFile(
        join(folder, `${user}-${at}.json`),
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      )
    }
  }
}

function objectsOf(user: string, { verbs, namespace, name }: Grant): readonly object[] {
  const isImpersonation = verbs.includes('impersonate')
  const rule = {
    verbs,
    apiGroups: isImpersonation ? [''] : ['', 'events.k8s.io', 'tidings.dev'],
    resources: isImpersonation
      ? ['users', 'groups']
      : ['events', 'eventsummaries', 'eventhistograms'],
    ...(name === undefined ? {} : { resourceNames: [name] }),
  }
  const cluster = namespace === undefined ? 'Cluster' : ''
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const metadata = { name: user, ...(namespace === undefined ? {} : { namespace }) }
  return [
    { apiVersion, kind: `${cluster}Role`, metadata, rules: [rule] },
    {
      apiVersion,
      kind: `${cluster}RoleBinding`,
      metadata,
      roleRef: { kind: `${cluster}Role`, name: user },
      subjects: [{ kind: 'User', name: user }],
    },
  ]
}
