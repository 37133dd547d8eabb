import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Json } from '../../lib/json.ts'
import type { Attributes, ResourceAttributes } from '../attributes.ts'
import type { User } from '../user.ts'
import { builtinObjects } from './rbac-builtin.ts'
import { readPolicyObject } from './rbac-objects.ts'
import { RbacPolicy } from './rbac-policy.ts'

/** An object in the format of a policy file. */
interface Tree {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
  }
  readonly rules?: readonly TreeRule[]
  readonly aggregationRule?: {
    readonly clusterRoleSelectors: readonly {
      readonly matchLabels: Readonly<Record<string, string>>
    }[]
  }
  readonly roleRef?: { readonly kind: string; readonly name: string }
  readonly subjects?: readonly {
    readonly kind: string
    readonly name: string
    readonly namespace?: string
  }[]
}

interface TreeRule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

/**
 * A model: Kubernetes' documentation of RBAC word for word, without regard to speed. It tries every
 * rule of the role of every binding.
 */
function modelAllows(trees: readonly Tree[], user: User, attributes: Attributes): boolean {
  return trees
    .filter((tree) => tree.roleRef !== undefined)
    .filter(({ metadata: { namespace } }) =>
      namespace === undefined ? true : attributes.isResource && attributes.namespace === namespace,
    )
    .filter((binding) => modelIsSubject(binding, user))
    .some((binding) => modelRules(trees, binding).some((rule) => modelCovers(rule, attributes)))
}

/** All reasons that Kubernetes might give: it stops at the first binding, in any order. */
function modelReasons(
  trees: readonly Tree[],
  user: User,
  attributes: Attributes,
): readonly string[] {
  return trees
    .filter(
      (tree) =>
        tree.roleRef !== undefined && modelAllows([tree, ...rolesIn(trees)], user, attributes),
    )
    .map(({ kind, metadata, roleRef, subjects = [] }) => {
      const { name, namespace } = metadata
      const binding = namespace === undefined ? name : `${name}/${namespace}`
      const subject = subjects.find((one) =>
        modelIsSubject({ kind, metadata, subjects: [one] }, user),
      )
      const account = `${subject?.name}/${subject?.namespace ?? namespace}`
      const who = subject?.kind === 'ServiceAccount' ? account : subject?.name
      return `RBAC: allowed by ${kind} "${binding}" of ${roleRef?.kind} "${roleRef?.name}" to ${subject?.kind} "${who}"`
    })
}

function rolesIn(trees: readonly Tree[]): readonly Tree[] {
  return trees.filter((tree) => tree.roleRef === undefined)
}

function modelIsSubject({ subjects = [], metadata }: Tree, user: User): boolean {
  return subjects.some(({ kind, name, namespace }) => {
    if (kind === 'User') return user.name === name
    if (kind === 'Group') return user.groups.includes(name)
    return user.name === `system:serviceaccount:${namespace ?? metadata.namespace}:${name}`
  })
}

function modelRules(trees: readonly Tree[], { roleRef, metadata }: Tree): readonly TreeRule[] {
  const role = trees.find(
    (tree) =>
      tree.kind === roleRef?.kind &&
      tree.metadata.name === roleRef.name &&
      (tree.kind === 'ClusterRole' || tree.metadata.namespace === metadata.namespace),
  )
  return role === undefined ? [] : modelRoleRules(trees, role, new Set())
}

/** Visits each role once: roles that select each other would otherwise recurse forever. */
function modelRoleRules(trees: readonly Tree[], role: Tree, taken: Set<Tree>): readonly TreeRule[] {
  const { aggregationRule } = role
  if (taken.has(role)) return []
  taken.add(role)
  if (aggregationRule === undefined) return role.rules ?? []
  return trees
    .filter((tree) => tree.kind === 'ClusterRole')
    .filter(({ metadata: { labels = {} } }) =>
      aggregationRule.clusterRoleSelectors.some(({ matchLabels }) =>
        Object.entries(matchLabels).every(([key, value]) => labels[key] === value),
      ),
    )
    .flatMap((tree) => modelRoleRules(trees, tree, taken))
}

function modelCovers(rule: TreeRule, attributes: Attributes): boolean {
  const has = (list: readonly string[] | undefined, value: string): boolean =>
    list?.includes('*') === true || list?.includes(value) === true
  if (!has(rule.verbs, attributes.verb)) return false
  if (!attributes.isResource) {
    return (rule.nonResourceURLs ?? []).some(
      (url) =>
        url === attributes.path ||
        (url.endsWith('*') && attributes.path.startsWith(url.replace(/\*+$/, ''))),
    )
  }
  const { resource, subresource, group, name } = attributes
  const whole = subresource === '' ? resource : `${resource}/${subresource}`
  const { resources = [], resourceNames = [] } = rule
  return (
    has(rule.apiGroups, group) &&
    (has(resources, whole) || (subresource !== '' && resources.includes(`*/${subresource}`))) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  )
}

const group = 'rbac.authorization.k8s.io'

function policyOf(trees: readonly Tree[]): RbacPolicy {
  return new RbacPolicy(
    trees.map((tree) =>
      readPolicyObject({ at: '', tree: { apiVersion: `${group}/v1`, ...tree } as never }),
    ),
  )
}

const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']
const namespaces = ['a', 'b']
const some = (...values: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...values)
const few = (values: fc.Arbitrary<string>, minLength = 0): fc.Arbitrary<string[]> =>
  fc.array(values, { minLength, maxLength: 3, size: 'max' })

const resourceRule: fc.Arbitrary<TreeRule> = fc.record({
  verbs: few(some('get', 'list', 'create', '*', 'impersonate'), 1),
  apiGroups: few(some('', 'events.k8s.io', '*', 'other.io'), 1),
  resources: few(some('events', 'events/status', '*', '*/status', 'pods', 'constructor'), 1),
  resourceNames: few(some('x', 'y', '', '*', '__proto__')),
})
const pathRule: fc.Arbitrary<TreeRule> = fc.record({
  verbs: few(some('get', 'post', '*'), 1),
  nonResourceURLs: few(some('/livez', '/livez/*', '/liv*', '*', '/api/**', '/a*b', ''), 1),
})
const labels = fc.record({ tier: some('one', 'two'), team: some('red', 'blue') })
const clusterRole: fc.Arbitrary<Tree> = fc.record(
  {
    kind: fc.constant('ClusterRole'),
    metadata: fc.record({ name: some('r1', 'r2', 'r3', 'r4'), labels }),
    rules: fc.array(fc.oneof(resourceRule, resourceRule, pathRule), { minLength: 1, maxLength: 4 }),
    aggregationRule: fc.record({
      clusterRoleSelectors: fc.array(fc.record({ matchLabels: labels }), {
        minLength: 1,
        maxLength: 2,
      }),
    }),
  },
  { requiredKeys: ['kind', 'metadata', 'rules'] },
)
const role: fc.Arbitrary<Tree> = fc.record({
  kind: fc.constant('Role'),
  metadata: fc.record({ name: some('r1', 'r2'), namespace: some(...namespaces) }),
  rules: fc.array(resourceRule, { maxLength: 3 }),
})
const account = fc.record({
  kind: fc.constant('ServiceAccount'),
  name: some('bot', 'u1'),
  namespace: some(...namespaces),
})
const person = fc.record({ kind: some('User', 'Group'), name: some('u1', 'u2', 'g1', 'g2') })
const roleRef = fc.record({ kind: fc.constant('ClusterRole'), name: some('r1', 'r2', 'r3', 'r5') })
const clusterBinding: fc.Arbitrary<Tree> = fc.record({
  kind: fc.constant('ClusterRoleBinding'),
  metadata: fc.record({ name: some('b1', 'b2', 'b3') }),
  roleRef,
  subjects: fc.array(fc.oneof(person, account), { minLength: 1, maxLength: 4 }),
})
const binding: fc.Arbitrary<Tree> = fc.record({
  kind: fc.constant('RoleBinding'),
  metadata: fc.record({ name: some('b1', 'b2', 'b3'), namespace: some(...namespaces) }),
  roleRef: fc.record({ kind: some('Role', 'ClusterRole'), name: some('r1', 'r2', 'r5') }),
  subjects: fc.array(
    fc.oneof(
      person,
      account,
      account.map(({ kind, name }) => ({ kind, name })),
    ),
    { minLength: 1, maxLength: 4 },
  ),
})
const trees: fc.Arbitrary<Tree[]> = fc.uniqueArray(
  fc.oneof(clusterRole, clusterRole, role, clusterBinding, binding),
  {
    selector: ({ kind, metadata: { name, namespace } }) => `${kind} ${namespace} ${name}`,
    minLength: 8,
    maxLength: 16,
    size: 'max',
  },
)
const attributes: fc.Arbitrary<Attributes> = fc.oneof(
  fc.record({
    isResource: fc.constant(true as const),
    cluster: fc.constant('local'),
    verb: some('get', 'list', 'create', 'impersonate', '', '*', 'watch'),
    group: some('', 'events.k8s.io', 'third.io', '*'),
    version: fc.constant('v1'),
    resource: some('events', 'pods', '*', 'constructor'),
    subresource: some('', '', 'status', 'scale'),
    namespace: some('', 'a', 'b', 'c'),
    name: some('', 'x', 'y', 'z', '__proto__', '*'),
    path: fc.constant(''),
  }),
  fc.record({
    isResource: fc.constant(false as const),
    cluster: fc.constant('local'),
    verb: some('get', 'post', 'head'),
    path: some('/livez', '/livez/ping', '/live', '/api/v1', '/a*b', '/axb', ''),
  }),
)
const user: fc.Arbitrary<User> = fc.record({
  name: some('u1', 'u2', 'g1', 'system:serviceaccount:a:bot', 'system:serviceaccount:b:u1'),
  groups: few(some('g1', 'g2', 'u1', 'constructor'), 1),
})

describe('RbacPolicy', () => {
  test('the policy decides as the model does, for any objects and any request', () => {
    let allowed = 0
    const requests = fc.array(fc.tuple(user, attributes), { minLength: 20, maxLength: 20 })
    fc.assert(
      fc.property(trees, requests, (policyTrees, all) => {
        const policy = policyOf(policyTrees)
        for (const [who, what] of all) {
          const isAllowed = policy.allows(who, what)
          if (isAllowed) allowed++
          assert.equal(isAllowed, modelAllows(policyTrees, who, what), JSON.stringify([who, what]))
        }
      }),
      { numRuns: 400 },
    )
    // Without any permission, the property would test nothing.
    assert.ok(allowed > 100, `${allowed}`)
  })

  test('the reason names a binding that allows, in the words of Kubernetes', () => {
    const kinds = new Set<string>()
    const requests = fc.array(fc.tuple(user, attributes), { minLength: 20, maxLength: 20 })
    fc.assert(
      fc.property(trees, requests, (policyTrees, all) => {
        const policy = policyOf(policyTrees)
        for (const [who, what] of all) {
          const reason = policy.reasonFor(who, what)
          const reasons = modelReasons(policyTrees, who, what)
          if (reason === undefined) assert.deepEqual(reasons, [])
          else assert.ok(reasons.includes(reason), JSON.stringify([reason, reasons]))
          const kind = /^RBAC: allowed by (\w+).* of (\w+).* to (\w+) /.exec(reason ?? '')
          for (const one of kind?.slice(1) ?? []) kinds.add(one)
        }
      }),
      { numRuns: 400 },
    )
    // All kinds must occur, or the property would test little.
    const all = 'ClusterRole ClusterRoleBinding Group Role RoleBinding ServiceAccount User'
    assert.equal([...kinds].sort().join(' '), all)
  })

  test('names are quoted as Go quotes them', () => {
    const policy = policyOf([
      {
        kind: 'ClusterRole',
        metadata: { name: 'reader' },
        rules: [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }],
      },
      {
        kind: 'ClusterRoleBinding',
        metadata: { name: 'x' },
        roleRef: { kind: 'ClusterRole', name: 'reader' },
        subjects: [{ kind: 'User', name: 'a "b"\n' }],
      },
    ])
    const metrics = { isResource: false, cluster: 'local', verb: 'get', path: '/metrics' } as const
    assert.equal(
      policy.reasonFor({ name: 'a "b"\n', groups: [] }, metrics),
      'RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "reader" to User "a \\"b\\"\\n"',
    )
  })

  test('the rules for a user and a namespace are those by which the policy decides', () => {
    fc.assert(
      fc.property(trees, user, attributes, (policyTrees, who, what) => {
        const policy = policyOf(policyTrees)
        const rules = policy.rulesFor(who, what.isResource ? what.namespace : '')
        const listed = rules.some((rule) =>
          modelCovers({ ...rule, nonResourceURLs: rule.nonResourceUrls }, what),
        )
        assert.equal(listed, policy.allows(who, what))
      }),
      { numRuns: 300 },
    )
  })

  test('bindings to roles that do not exist are reported', () => {
    const subjects = [{ kind: 'User', name: 'ada' }]
    const policy = policyOf([
      {
        kind: 'RoleBinding',
        metadata: { name: 'one', namespace: 'a' },
        roleRef: { kind: 'Role', name: 'gone' },
        subjects,
      },
      {
        kind: 'ClusterRoleBinding',
        metadata: { name: 'two' },
        roleRef: { kind: 'ClusterRole', name: 'gone' },
        subjects,
      },
    ])
    assert.deepEqual(policy.dangling, [
      { binding: 'RoleBinding a/one', role: 'Role a/gone' },
      { binding: 'ClusterRoleBinding two', role: 'ClusterRole gone' },
    ])
  })

  test('a decision takes microseconds in a policy of ten thousand bindings', () => {
    const people = Array.from({ length: 10_000 }, (_, index) => `user-${index}`)
    const policy = policyOf([
      {
        kind: 'ClusterRole',
        metadata: { name: 'reader' },
        rules: [{ verbs: ['get'], apiGroups: [''], resources: ['events'] }],
      },
      ...people.map((name, index) => ({
        kind: 'RoleBinding',
        metadata: { name, namespace: `ns-${index % 100}` },
        roleRef: { kind: 'ClusterRole', name: 'reader' },
        subjects: [{ kind: 'User', name }],
      })),
    ])
    const what = eventsIn('ns-7', 'get', { group: '' })
    const groups = Array.from({ length: 20 }, (_, index) => `group-${index}`)
    const startedAt = performance.now()
    for (let round = 0; round < 10_000; round++) {
      assert.equal(policy.allows({ name: 'user-7', groups }, what), true)
      assert.equal(policy.allows({ name: 'user-8', groups }, what), false)
    }
    const microseconds = ((performance.now() - startedAt) * 1000) / 20_000
    assert.ok(microseconds < 50, `${microseconds} µs`)
  })
})

function eventsIn(
  namespace: string,
  verb: string,
  rest: Partial<ResourceAttributes> = {},
): ResourceAttributes {
  return {
    isResource: true,
    cluster: 'local',
    verb,
    group: 'events.k8s.io',
    version: 'v1',
    resource: 'events',
    subresource: '',
    namespace,
    name: '',
    path: '',
    ...rest,
  }
}

describe('the built-in roles', () => {
  const read = ['get', 'list', 'watch']
  const write = ['create', 'update', 'patch', 'delete', 'deletecollection']
  const rights: Readonly<Record<string, readonly string[]>> = {
    view: read,
    edit: [...read, ...write],
    admin: [...read, ...write],
    'cluster-admin': [...read, ...write, 'impersonate'],
    'system:discovery': [],
    'system:basic-user': [],
    'system:monitoring': [],
    'system:public-info-viewer': [],
  }
  const scopes: readonly (string | undefined)[] = [undefined, 'a', 'unbound']

  interface Case {
    readonly role: string
    /** Where it is bound: in the cluster, in a namespace, or not at all. */
    readonly scope: string | undefined
    readonly attributes: ResourceAttributes
  }

  /** Every combination. */
  function* cases(): Generator<Case> {
    const groups = ['', 'events.k8s.io', 'events.example.dev']
    const all = [Object.keys(rights), scopes, [...verbs, 'impersonate', ''], groups, ['', 'a', 'b']]
    for (const [role = '', scope, verb = '', apiGroup = '', namespace = ''] of product(all)) {
      for (const name of ['', 'x']) {
        yield { role, scope, attributes: eventsIn(namespace, verb, { group: apiGroup, name }) }
      }
    }
  }

  function policyWith(role: string, scope: string | undefined): RbacPolicy {
    return new RbacPolicy([
      ...builtinObjects('events.k8s.io'),
      {
        kind: 'Binding',
        namespace: scope === 'unbound' ? undefined : scope,
        name: 'mine',
        role: { isCluster: true, name: role },
        subjects: scope === 'unbound' ? [] : [{ kind: 'User', name: 'ada' }],
      },
    ])
  }

  function expected({
    role,
    scope,
    attributes: { namespace, group: apiGroup, verb },
  }: Case): boolean {
    const isBound = scope === undefined || (scope === 'a' && namespace === 'a')
    if (role === 'cluster-admin') return isBound
    return isBound && apiGroup !== 'events.example.dev' && rights[role]?.includes(verb) === true
  }

  test('each role allows its verbs and no others, bound in the cluster, a namespace or not at all', () => {
    const policies = new Map<string, RbacPolicy>()
    let count = 0
    for (const one of cases()) {
      const key = `${one.role} ${one.scope}`
      const policy = policies.get(key) ?? policyWith(one.role, one.scope)
      policies.set(key, policy)
      const isAllowed = policy.allows({ name: 'ada', groups: [] }, one.attributes)
      assert.equal(isAllowed, expected(one), JSON.stringify(one))
      count++
    }
    assert.equal(count, 8 * 3 * 10 * 3 * 3 * 2)
  })

  test('summaries can be listed where events can be read, and nothing else', () => {
    for (const resource of ['eventsummaries', 'eventhistograms', 'retentionwindows']) {
      const summaries = { group: 'tidings.dev', version: 'v1alpha1', resource }
      for (const [role, scope, verb, namespace, isAllowed] of [
        ['view', 'a', 'list', 'a', true],
        ['edit', 'a', 'list', 'a', true],
        ['view', 'a', 'list', '', false],
        ['view', 'a', 'list', 'b', false],
        ['view', undefined, 'list', '', true],
        ['view', undefined, 'watch', '', false],
        ['system:discovery', undefined, 'list', '', false],
      ] as const) {
        const wanted = eventsIn(namespace, verb, summaries)
        const found = policyWith(role, scope).allows({ name: 'ada', groups: [] }, wanted)
        assert.equal(found, isAllowed, JSON.stringify([role, scope, verb, namespace]))
      }
    }
  })

  test('the users of summaries are for administrators', () => {
    const users = {
      ...{ group: 'tidings.dev', version: 'v1alpha1', resource: 'eventsummaries' },
      subresource: 'users',
    }
    for (const [role, isAllowed] of [
      ['view', false],
      ['edit', false],
      ['admin', false],
      ['cluster-admin', true],
    ] as const) {
      const found = policyWith(role, undefined).allows(
        { name: 'ada', groups: [] },
        eventsIn('', 'list', users),
      )
      assert.equal(found, isAllowed, role)
    }
  })

  test('paths can be read by these groups', () => {
    const policy = new RbacPolicy(builtinObjects('events.k8s.io'))
    const readers = (path: string, verb = 'get'): readonly string[] =>
      ['system:unauthenticated', 'system:authenticated', 'system:monitoring', 'system:masters']
        .filter((one) =>
          policy.allows(
            { name: 'ada', groups: [one] },
            { isResource: false, cluster: 'local', verb, path },
          ),
        )
        .map((one) => one.slice('system:'.length))
    assert.deepEqual(readers('/livez'), [
      'unauthenticated',
      'authenticated',
      'monitoring',
      'masters',
    ])
    assert.deepEqual(readers('/version'), ['unauthenticated', 'authenticated', 'masters'])
    assert.deepEqual(readers('/apis/events.k8s.io/v1'), ['authenticated', 'masters'])
    assert.deepEqual(readers('/livez/ping'), ['monitoring', 'masters'])
    assert.deepEqual(readers('/metrics'), ['monitoring', 'masters'])
    assert.deepEqual(readers('/nope'), ['masters'])
    assert.deepEqual(readers('/'), ['masters'])
    assert.deepEqual(readers('/livez', 'post'), ['masters'])
  })

  test('a role with the label aggregate-to-view extends view, edit and admin', () => {
    const tree = {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'notes', labels: { [`${group}/aggregate-to-view`]: 'true' } },
      rules: [{ verbs: ['get'], apiGroups: ['notes.example.dev'], resources: ['notes'] }],
    } as Record<string, Json>
    for (const name of ['view', 'edit', 'admin']) {
      const policy = new RbacPolicy([
        ...builtinObjects('events.k8s.io'),
        readPolicyObject({ at: '', tree }),
        {
          kind: 'Binding',
          namespace: 'a',
          name: 'mine',
          role: { isCluster: true, name },
          subjects: [{ kind: 'Group', name: 'dev' }],
        },
      ])
      const what = eventsIn('a', 'get', { group: 'notes.example.dev', resource: 'notes' })
      assert.equal(policy.allows({ name: 'ada', groups: ['dev'] }, what), true, name)
    }
  })
})

/** The Cartesian product. */
function product<T>(lists: readonly (readonly T[])[]): readonly (readonly T[])[] {
  return lists.reduce<readonly (readonly T[])[]>(
    (made, list) => made.flatMap((before) => list.map((next) => [...before, next])),
    [[]],
  )
}
