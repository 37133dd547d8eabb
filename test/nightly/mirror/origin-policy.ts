/** Random roles and bindings at a real API server, and requests that ask about them. */
import type { KubeApiserver } from '../../support/kube-apiserver.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const NAMESPACES = ['n1', 'n2', 'n3']
const GROUPS = ['', 'events.k8s.io']
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']
const ROLES = 8
const BINDINGS = 14
const CLUSTER_BINDINGS = 3

export interface Random {
  /** Returns an integer from 0 to below `limit`. */
  below(limit: number): number
  pick<T>(all: readonly T[]): T
  some<T>(all: readonly T[]): T[]
}

/** The same sequence for the same seed. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  const pick = <T>(all: readonly T[]): T => all[below(all.length)] as T
  const some = <T>(all: readonly T[]): T[] => {
    const chosen = all.filter(() => below(2) === 0)
    return chosen.length === 0 ? [pick(all)] : chosen
  }
  return { below, pick, some }
}

/** Creates roles of all shapes and binds them to users, groups and service accounts. */
export async function writePolicy(
  kube: KubeApiserver,
  random: Random,
  users: readonly string[],
): Promise<void> {
  const rule = (): object => ({
    verbs: random.below(6) === 0 ? ['*'] : random.some(VERBS),
    apiGroups: random.below(6) === 0 ? ['*'] : random.some([...GROUPS, 'apps']),
    resources: random.pick([['events'], ['events', 'pods'], ['pods'], ['*'], ['events/status']]),
    ...(random.below(4) === 0 ? { resourceNames: random.some(['one', 'two']) } : {}),
  })
  const rules = (): object[] => Array.from({ length: 1 + random.below(2) }, rule)
  const roles: { readonly kind: string; readonly name: string; readonly namespace?: string }[] = []
  for (let at = 0; at < ROLES; at++) {
    const name = `role-${at}`
    const namespace = random.pick(NAMESPACES)
    await kube.create(`${RBAC}/namespaces/${namespace}/roles`, {
      metadata: { name },
      rules: rules(),
    })
    await kube.create(`${RBAC}/clusterroles`, { metadata: { name }, rules: rules() })
    roles.push({ kind: 'Role', name, namespace }, { kind: 'ClusterRole', name })
  }
  const subjects = (): object[] =>
    random.below(3) === 0
      ? [{ kind: 'Group', name: random.pick(['dev', 'ops', 'system:serviceaccounts:n1']) }]
      : [subjectOf(random.pick(users)), subjectOf(random.pick(users))]
  for (let at = 0; at < BINDINGS + CLUSTER_BINDINGS; at++) {
    const isClusterWide = at >= BINDINGS
    const {
      kind,
      name,
      namespace = random.pick(NAMESPACES),
    } = random.pick(roles.filter((role) => !isClusterWide || role.kind === 'ClusterRole'))
    const path = isClusterWide ? 'clusterrolebindings' : `namespaces/${namespace}/rolebindings`
    await kube.create(`${RBAC}/${path}`, {
      metadata: { name: `binding-${at}` },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name },
      subjects: subjects(),
    })
  }
}

function subjectOf(user: string): object {
  const [, namespace, name] = /^system:serviceaccount:(.+):(.+)$/.exec(user) ?? []
  return namespace === undefined
    ? { kind: 'User', name: user }
    : { kind: 'ServiceAccount', namespace, name }
}

export interface Question {
  readonly user: string
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers: Readonly<Record<string, string>>
}

/** Each user with each verb, in each namespace and in all of them. None of them changes anything. */
export function questions(users: readonly string[]): readonly Question[] {
  return users.flatMap((user) =>
    GROUPS.flatMap((group) => {
      const root = group === '' ? '/api/v1' : `/apis/${group}/v1`
      const all = [
        `${root}/events`,
        ...NAMESPACES.map((name) => `${root}/namespaces/${name}/events`),
      ]
      return all.flatMap((path) => questionsAt(path).map((question) => ({ user, ...question })))
    }),
  )
}

const JSON_BODY = { 'content-type': 'application/json' }
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' }

function questionsAt(path: string): readonly Omit<Question, 'user'>[] {
  const read = (query: string): Omit<Question, 'user'> => ({
    method: 'GET',
    path: `${path}${query}`,
    headers: {},
  })
  const lists = [
    read('?limit=1'),
    read('?fieldSelector=metadata.name%3Done'),
    read('?watch=true&timeoutSeconds=1'),
  ]
  // Single events have a namespace.
  if (!path.includes('/namespaces/')) return lists
  return [
    ...lists,
    { method: 'POST', path, body: {}, headers: JSON_BODY },
    { method: 'DELETE', path: `${path}?fieldSelector=metadata.name%3Dnone`, headers: {} },
    ...['one', 'other'].flatMap((name) => [
      read(`/${name}`),
      { method: 'PUT', path: `${path}/${name}`, body: {}, headers: JSON_BODY },
      { method: 'PATCH', path: `${path}/${name}`, body: {}, headers: MERGE_PATCH },
      { method: 'DELETE', path: `${path}/${name}`, headers: {} },
    ]),
  ]
}

/** Runs `work` for all items, so many at a time. */
export async function inParallel<T>(
  width: number,
  items: readonly T[],
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values()
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of rest) await work(item)
    }),
  )
}
