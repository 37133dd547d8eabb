import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Json } from '../../lib/json.ts'
import type { Attributes } from '../attributes.ts'
import { readTarget } from '../target.ts'
import type { User } from '../user.ts'
import { type AuditRuling, auditPolicyOf, readAuditPolicy } from './audit-policy.ts'

const ada: User = { name: 'ada', groups: ['ops', 'system:authenticated'] }

const head = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy' }

/** The attributes of `GET /path?query`. */
function attributesOf(line: string): Attributes {
  const [method = '', target = ''] = line.split(' ')
  const [path = '', search = ''] = target.split('?')
  return readTarget({ method, path, query: new URLSearchParams(search) }, 'local')
}

function ruling(rule: Json, line: string, user: User | undefined = ada): AuditRuling {
  return readAuditPolicy({ ...head, rules: [rule] }).rule(user, attributesOf(line))
}

const matches = (rule: object, line: string, user: User | undefined = ada): boolean =>
  ruling({ level: 'Metadata', ...rule }, line, user).level === 'Metadata'

const one = 'GET /apis/events.k8s.io/v1/namespaces/shop/events/e1'
const list = 'GET /apis/events.k8s.io/v1/namespaces/shop/events'
const inCluster = (name: string) => `GET /clusters/${name}/api/v1/namespaces/shop/events`
const everywhere = 'GET /apis/events.k8s.io/v1/events'
const status = 'PUT /apis/events.k8s.io/v1/namespaces/shop/events/e1/status'
const core = 'GET /api/v1/namespaces/shop/events/e1'
const node = 'GET /api/v1/nodes/n1'
const health = 'GET /livez/ping'

const events = (resources?: string[], resourceNames?: string[]) => ({
  resources: [
    {
      group: 'events.k8s.io',
      ...(resources && { resources }),
      ...(resourceNames && { resourceNames }),
    },
  ],
})

/** A rule, a request, and whether the rule matches it in Kubernetes. */
const table: readonly [rule: object, line: string, expected: boolean][] = [
  [{}, one, true],
  [{}, health, true],
  [{ users: ['ada'] }, one, true],
  [{ users: ['bob'] }, one, false],
  [{ users: ['bob', 'ada'] }, one, true],
  [{ users: [] }, one, true],
  [{ userGroups: ['ops'] }, one, true],
  [{ userGroups: ['dev'] }, one, false],
  [{ users: ['ada'], userGroups: ['dev'] }, one, false],
  [{ verbs: ['get'] }, one, true],
  [{ verbs: ['get'] }, health, true],
  [{ verbs: ['list'] }, one, false],
  [{ verbs: ['list'] }, list, true],
  [{ verbs: ['watch'] }, `${list}?watch=1`, true],
  [{ verbs: ['deletecollection'] }, list.replace('GET', 'DELETE'), true],
  // A star is a wildcard for resources, not for verbs or users.
  [{ verbs: ['*'] }, one, false],
  [{ users: ['*'] }, one, false],

  [{ clusters: ['local'] }, one, true],
  [{ clusters: ['local'] }, health, true],
  [{ clusters: ['a', 'b'] }, one, false],
  [{ clusters: ['a', 'b'] }, inCluster('b'), true],
  [{ clusters: ['*'] }, inCluster('b'), false],
  [{ clusters: ['*'] }, inCluster('*'), true],
  [{ clusters: ['a'] }, inCluster('*'), false],
  [{ clusters: ['local'] }, inCluster('local'), true],
  [{ clusters: ['b'], namespaces: ['other'] }, inCluster('b'), false],
  [{ namespaces: ['shop'] }, one, true],
  [{ namespaces: ['other'] }, one, false],
  [{ namespaces: ['shop'] }, everywhere, false],
  [{ namespaces: [''] }, everywhere, true],
  [{ namespaces: [''] }, node, true],
  [{ namespaces: [''] }, one, false],
  [{ namespaces: [''] }, health, false],

  [events(), one, true],
  [events(), status, true],
  [events(), core, false],
  [events(), health, false],
  [{ resources: [{ group: '' }] }, core, true],
  [{ resources: [{}] }, core, true],
  [{ resources: [{ group: '*' }] }, core, false],
  [events(['events']), one, true],
  [events(['events']), list, true],
  [events(['events']), status, false],
  [events(['pods']), one, false],
  [events(['pods', 'events']), one, true],
  [events(['events/status']), status, true],
  [events(['events/status']), one, false],
  [events(['*']), one, true],
  [events(['*']), status, true],
  [events(['*']), core, false],
  [events(['*/status']), status, true],
  [events(['*/status']), one, false],
  [events(['*/scale']), status, false],
  [events(['events/*']), status, true],
  [events(['events/*']), one, true],
  [events(['pods/*']), status, false],
  [events(['events'], ['e1']), one, true],
  [events(['events'], ['e2']), one, false],
  [events(['events'], ['e1']), list, false],
  [events(['events'], ['']), list, true],
  [events(['events'], ['e1']), `${list}?fieldSelector=metadata.name%3De1`, true],
  [{ ...events(['events']), namespaces: ['shop'] }, one, true],
  [{ ...events(['events']), namespaces: ['other'] }, one, false],
  [{ resources: [{ group: 'a' }, { group: 'events.k8s.io' }] }, one, true],

  [{ nonResourceURLs: ['/livez/ping'] }, health, true],
  [{ nonResourceURLs: ['/livez'] }, health, false],
  [{ nonResourceURLs: ['/livez*'] }, health, true],
  [{ nonResourceURLs: ['/livez/*'] }, 'GET /livez', false],
  [{ nonResourceURLs: ['*'] }, health, true],
  [{ nonResourceURLs: ['*'] }, one, false],
  [{ nonResourceURLs: ['/apis*'] }, one, false],
  [{ nonResourceURLs: ['/apis*'] }, 'GET /apis/events.k8s.io/v1', true],
]

describe('audit policy', () => {
  for (const [rule, line, expected] of table) {
    test(`${JSON.stringify(rule)} ${expected ? 'matches' : 'does not match'} ${line}`, () => {
      assert.equal(matches(rule, line), expected)
    })
  }

  test('a request without a user matches no user and no group', () => {
    const matchesWithoutUser = (rule: object): boolean => {
      const policy = readAuditPolicy({ ...head, rules: [{ level: 'Metadata', ...rule }] })
      return policy.rule(undefined, attributesOf(one)).level === 'Metadata'
    }
    assert.equal(matchesWithoutUser({}), true)
    assert.equal(matchesWithoutUser({ users: [''] }), false)
    assert.equal(matchesWithoutUser({ userGroups: ['system:unauthenticated'] }), false)
  })

  test('the first rule that matches decides, and without one the level is None', () => {
    const { rule } = readAuditPolicy({
      ...head,
      rules: [
        { level: 'None', verbs: ['list'] },
        { level: 'Request', ...events(['events']) },
        { level: 'RequestResponse', ...events() },
      ],
    })
    assert.equal(rule(ada, attributesOf(list)).level, 'None')
    assert.equal(rule(ada, attributesOf(one)).level, 'Request')
    assert.equal(rule(ada, attributesOf(status)).level, 'RequestResponse')
    assert.equal(rule(ada, attributesOf(health)).level, 'None')
  })

  test('the omitted stages are those of the policy and those of the rule', () => {
    const { rule } = readAuditPolicy({
      ...head,
      omitStages: ['RequestReceived'],
      rules: [{ level: 'Metadata', omitStages: ['Panic'] }],
    })
    assert.deepEqual([...rule(ada, attributesOf(one)).omitStages].sort(), [
      'Panic',
      'RequestReceived',
    ])
  })

  test("a rule's omitManagedFields overrides the policy's", () => {
    const omits = (own: Json, all: Json): boolean =>
      readAuditPolicy({
        ...head,
        omitManagedFields: all,
        rules: [{ level: 'Request', omitManagedFields: own }],
      }).rule(ada, attributesOf(one)).omitManagedFields
    assert.deepEqual(
      [omits(null, null), omits(null, true), omits(false, true), omits(true, false)],
      [false, true, false, true],
    )
  })

  const wrong: readonly [Json, RegExp][] = [
    [null, /must be a Policy/],
    [[], /must be a Policy/],
    [{ rules: [] }, /must be a Policy/],
    [
      { ...head, apiVersion: 'audit.k8s.io/v1beta1', rules: [{ level: 'None' }] },
      /audit.k8s.io\/v1/,
    ],
    [{ ...head }, /rules: at least one is required/],
    [{ ...head, rules: {} }, /rules: must be a list/],
    [{ ...head, rules: ['x'] }, /rules\[0\]: must be a mapping/],
    [{ ...head, rules: [{}] }, /rules\[0\].level: must be one of None, Metadata, Request, /],
    [{ ...head, rules: [{ level: 'metadata' }] }, /rules\[0\].level: must be one of/],
    [{ ...head, rules: [{ level: 'None', user: ['a'] }] }, /rules\[0\].user: unknown field/],
    [{ ...head, rules: [{ level: 'None', users: 'a' }] }, /rules\[0\].users: must be a list/],
    [
      { ...head, rules: [{ level: 'None', users: [1] }] },
      /rules\[0\].users\[0\]: 1 is not a string/,
    ],
    [
      { ...head, rules: [{ level: 'None', omitStages: ['Received'] }] },
      /omitStages: must be one of/,
    ],
    [{ ...head, omitStages: 'Panic', rules: [{ level: 'None' }] }, /omitStages: must be a list/],
    [{ ...head, omitManagedFields: 'yes', rules: [{ level: 'None' }] }, /is not a boolean/],
    [{ ...head, rules: [{ level: 'None', clusters: ['Prod'] }] }, /clusters: must be names of/],
    [{ ...head, rules: [{ level: 'None', clusters: ['a*'] }] }, /clusters: must be names of/],
    [{ ...head, rules: [{ level: 'None', nonResourceURLs: ['livez'] }] }, /start with a slash/],
    [{ ...head, rules: [{ level: 'None', nonResourceURLs: ['/a*b'] }] }, /only be the last/],
    [
      { ...head, rules: [{ level: 'None', nonResourceURLs: ['/a'], namespaces: ['n'] }] },
      /cannot be combined/,
    ],
    [{ ...head, rules: [{ level: 'None', resources: [{ group: 'a/v1' }] }] }, /without a version/],
    [
      { ...head, rules: [{ level: 'None', resources: [{ resourceNames: ['a'] }] }] },
      /requires at least one entry in resources/,
    ],
    [
      { ...head, rules: [{ level: 'None', resources: [{ resource: ['a'] }] }] },
      /rules\[0\].resources\[0\].resource: unknown field/,
    ],
  ]
  for (const [document, message] of wrong) {
    test(`${JSON.stringify(document)} is refused`, () => {
      assert.throws(() => readAuditPolicy(document), { message })
    })
  }

  test('any document is read or refused with a plain error', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        try {
          readAuditPolicy({ ...head, rules: [value as Json] })
        } catch (error) {
          assert.ok(error instanceof Error && !(error instanceof TypeError))
        }
      }),
    )
  })

  test('a file has exactly one policy', () => {
    const policy = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n'
    assert.equal(auditPolicyOf(`# ours\n---\n${policy}`).ruleCount, 1)
    assert.throws(() => auditPolicyOf(''), /the file is empty/)
    assert.throws(() => auditPolicyOf(`${policy}---\n${policy}`), /more than one document/)
    assert.throws(() => auditPolicyOf('rules: ['), /line 1/)
  })
})
