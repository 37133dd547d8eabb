import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../../lib/json.ts'
import { objectsIn, type PolicyObject, readPolicyObject } from './rbac-objects.ts'

const apiVersion = 'rbac.authorization.k8s.io/v1'

function read(tree: Json): readonly PolicyObject[] {
  return [...objectsIn(tree)].map(readPolicyObject)
}

const rule = { verbs: ['get'], apiGroups: [''], resources: ['events'] }
const role = (more: JsonObject): JsonObject => ({
  apiVersion,
  kind: 'Role',
  metadata: { name: 'r', namespace: 'a' },
  rules: [rule],
  ...more,
})
const clusterRole = (more: JsonObject): JsonObject => ({
  apiVersion,
  kind: 'ClusterRole',
  metadata: { name: 'r' },
  ...more,
})
const binding = (more: JsonObject): JsonObject => ({
  apiVersion,
  kind: 'RoleBinding',
  metadata: { name: 'b', namespace: 'a' },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'r' },
  subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'ada' }],
  ...more,
})
const selecting = (selector: JsonObject): JsonObject =>
  clusterRole({ aggregationRule: { clusterRoleSelectors: [selector] } })

describe('readPolicyObject', () => {
  test('an object as kubectl prints it is read, and other metadata is ignored', () => {
    const [found] = read(
      role({
        metadata: {
          name: 'r',
          namespace: 'a',
          uid: 'u',
          creationTimestamp: null,
          managedFields: [{}],
          labels: { team: 'red' },
        },
      }),
    )
    assert.deepEqual(found, {
      kind: 'Role',
      namespace: 'a',
      name: 'r',
      labels: { team: 'red' },
      rules: [{ ...rule, resourceNames: [], nonResourceUrls: [] }],
      selectors: undefined,
    })
  })

  test('reads a service account as a user of its own namespace, otherwise of the binding’s namespace', () => {
    const [found] = read(
      binding({
        subjects: [
          { kind: 'ServiceAccount', name: 'one' },
          { kind: 'ServiceAccount', name: 'two', namespace: 'b' },
          { kind: 'Group', name: 'dev' },
        ],
      }),
    )
    assert.deepEqual(found?.kind === 'Binding' ? found.subjects : [], [
      {
        kind: 'User',
        name: 'system:serviceaccount:a:one',
        account: { namespace: 'a', name: 'one' },
      },
      {
        kind: 'User',
        name: 'system:serviceaccount:b:two',
        account: { namespace: 'b', name: 'two' },
      },
      { kind: 'Group', name: 'dev' },
    ])
  })

  test('lists are read item by item, with or without a kind of their own', () => {
    const names = (tree: Json): readonly string[] => read(tree).map(({ name }) => name)
    const items = [
      clusterRole({ metadata: { name: 'one' } }),
      role({ metadata: { name: 'two', namespace: 'a' } }),
    ]
    assert.deepEqual(names({ apiVersion: 'v1', kind: 'List', items }), ['one', 'two'])
    const bare = [{ metadata: { name: 'three' }, rules: [] }]
    assert.deepEqual(names({ apiVersion, kind: 'ClusterRoleList', items: bare }), ['three'])
    assert.deepEqual(names({ apiVersion, kind: 'RoleList', items: null }), [])
  })

  test('selectors select by labels and by expressions', () => {
    const matches = (selector: JsonObject, labels: Record<string, string>): boolean => {
      const [found] = read(selecting(selector))
      assert.ok(found?.kind === 'Role')
      return found.selectors?.[0]?.matches(labels) === true
    }
    assert.equal(matches({ matchLabels: { a: 'b' } }, { a: 'b', c: 'd' }), true)
    assert.equal(matches({ matchLabels: { a: 'b' } }, { a: 'c' }), false)
    assert.equal(matches({}, { a: 'c' }), true)
    const expression = (operator: string, values?: Json): JsonObject => ({
      matchExpressions: [{ key: 'x.io/a', operator, ...(values === undefined ? {} : { values }) }],
    })
    assert.equal(matches(expression('In', ['b', 'c']), { 'x.io/a': 'c' }), true)
    assert.equal(matches(expression('NotIn', ['b']), { 'x.io/a': 'c' }), true)
    assert.equal(matches(expression('Exists'), {}), false)
    assert.equal(matches(expression('DoesNotExist'), {}), true)
  })

  const mistakes: readonly (readonly [Json, RegExp])[] = [
    [[], /^must be an object/],
    ['role', /^must be an object/],
    [{ kind: 'Role' }, /^apiVersion: must be rbac/],
    [role({ apiVersion: 'rbac.authorization.k8s.io/v1beta1' }), /^apiVersion: must be rbac/],
    [role({ kind: 'Pod' }), /^kind: "Pod" is not one of Role, ClusterRole/],
    [role({ kind: '__proto__' }), /^kind: /],
    [role({ metadata: {} }), /^metadata\.name: is missing/],
    [role({ metadata: { name: 'a' } }), /^metadata\.namespace: is missing/],
    [role({ metadata: { name: 'a/b', namespace: 'a' } }), /^metadata\.name: must not/],
    [role({ metadata: { name: 7, namespace: 'a' } }), /^metadata\.name: 7 is not a string/],
    [
      clusterRole({ metadata: { name: 'a', namespace: 'a' } }),
      /^metadata\.namespace: must be empty/,
    ],
    [
      role({ metadata: { name: 'a', namespace: 'a', labels: { a: 1 } } }),
      /^metadata\.labels\.a: 1/,
    ],
    [
      role({ metadata: { name: 'a', namespace: 'a', labels: { 'a b': 'c' } } }),
      /^metadata\.labels\.a b: /,
    ],
    [role({ rules: {} }), /^rules: must be a list/],
    [role({ rules: ['x'] }), /^rules\[0\]: must be a mapping/],
    [role({ rules: [rule, { ...rule, verbs: [] }] }), /^rules\[1\]\.verbs: must not be empty/],
    [role({ rules: [{ ...rule, verbs: 'get' }] }), /^rules\[0\]\.verbs: must be a list/],
    [
      role({ rules: [{ ...rule, verbs: [true] }] }),
      /^rules\[0\]\.verbs\[0\]: true is not a string/,
    ],
    [role({ rules: [{ ...rule, apiGroups: null }] }), /^rules\[0\]\.apiGroups: must not be empty/],
    [role({ rules: [{ ...rule, resources: [] }] }), /^rules\[0\]\.resources: must not be empty/],
    [
      role({ rules: [{ ...rule, resourceName: ['x'] }] }),
      /^rules\[0\]\.resourceName: unknown field/,
    ],
    [
      role({ rules: [{ verbs: ['get'], nonResourceURLs: ['/x'] }] }),
      /nonResourceURLs: only a Cluster/,
    ],
    [
      clusterRole({ rules: [{ ...rule, nonResourceURLs: ['/x'] }] }),
      /^rules\[0\]: has both resources and/,
    ],
    [role({ aggregationRule: {} }), /^aggregationRule: unknown field/],
    [clusterRole({ aggregationRule: {} }), /clusterRoleSelectors: must not be empty/],
    [selecting({ matchLabel: {} }), /clusterRoleSelectors\[0\]\.matchLabel: unknown field/],
    [selecting({ matchLabels: { a: 'b,c=d' } }), /matchLabels\.a: /],
    [selecting({ matchExpressions: [{ key: 'a', operator: 'Is' }] }), /operator: must be In/],
    [selecting({ matchExpressions: [{ key: 'a', operator: 'In' }] }), /values: must not be empty/],
    [
      selecting({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }),
      /values: must be empty/,
    ],
    [binding({ roleRef: null }), /^roleRef: is missing/],
    [binding({ roleRef: { kind: 'Role', name: '' } }), /^roleRef\.name: is missing/],
    [
      binding({ roleRef: { kind: 'User', name: 'r' } }),
      /^roleRef\.kind: must be Role or ClusterRole/,
    ],
    [
      binding({ roleRef: { apiGroup: 'x', kind: 'Role', name: 'r' } }),
      /^roleRef\.apiGroup: must be rbac/,
    ],
    [
      binding({ kind: 'ClusterRoleBinding', metadata: { name: 'b' } }),
      /^roleRef\.kind: must be ClusterRole$/,
    ],
    [binding({ subjects: [{ kind: 'Robot', name: 'x' }] }), /^subjects\[0\]\.kind: must be User/],
    [binding({ subjects: [{ kind: 'User' }] }), /^subjects\[0\]\.name: is missing/],
    [
      binding({ subjects: [{ kind: 'User', name: 'x', namespace: 'a' }] }),
      /namespace: must be empty: a User/,
    ],
    [
      binding({ subjects: [{ kind: 'ServiceAccount', name: 'x', apiGroup: 'y' }] }),
      /apiGroup: must be empty/,
    ],
    [
      {
        ...binding({ kind: 'ClusterRoleBinding', metadata: { name: 'b' } }),
        roleRef: { kind: 'ClusterRole', name: 'r' },
        subjects: [{ kind: 'ServiceAccount', name: 'x' }],
      },
      /^subjects\[0\]\.namespace: is missing/,
    ],
    [{ kind: 'List', items: [role({}), role({ kind: 'Pod' })] }, /^items\[1\]\.kind: "Pod"/],
    [{ kind: 'List', items: [7] }, /^items\[0\]: must be an object/],
  ]
  for (const [tree, expected] of mistakes) {
    test(`${JSON.stringify(tree).slice(0, 150)} is refused: ${expected}`, () => {
      assert.throws(
        () => read(tree),
        (error) => error instanceof Error && expected.test(error.message),
      )
    })
  }
})
