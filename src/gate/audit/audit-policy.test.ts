import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Json } from '../../lib/json.ts'
import { type Attributes, attributesOf } from '../attributes.ts'
import type { User } from '../user.ts'
import { type AuditRuling, readAuditPolicy } from './audit-policy.ts'
import { auditPolicyOf } from './audit-policy-file.ts'

const ada: User = { name: 'ada', groups: ['ops', 'system:authenticated'] }

const head = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy' }

/** `GET /path?query` as the server would see it. */
function asked(line: string): Attributes {
  const [method = '', target = ''] = line.split(' ')
  const [path = '', search = ''] = target.split('?')
  return attributesOf({ method, path, query: new URLSearchParams(search) })
}

function ruling(rule: Json, line: string, user: User | undefined = ada): AuditRuling {
  return readAuditPolicy({ ...head, rules: [rule] }).rule(user, asked(line))
}

const matches = (rule: object, line: string, user: User | undefined = ada): boolean =>
  ruling({ level: 'Metadata', ...rule }, line, user).level === 'Metadata'

const one = 'GET /apis/events.k8s.io/v1/namespaces/shop/events/e1'
const list = 'GET /apis/events.k8s.io/v1/namespaces/shop/events'
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

/** What a rule says, a request, and whether the one is about the other, as Kubernetes has it. */
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
  // A star is a resource, not a verb or a user.
  [{ verbs: ['*'] }, one, false],
  [{ users: ['*'] }, one, false],

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
    test(`${JSON.stringify(rule)} ${expected ? 'is' : 'is not'} about ${line}`, () => {
      assert.equal(matches(rule, line), expected)
    })
  }

  test('a caller who is not known matches no user and no group', () => {
    const ofNobody = (rule: object): boolean => {
      const policy = readAuditPolicy({ ...head, rules: [{ level: 'Metadata', ...rule }] })
      return policy.rule(undefined, asked(one)).level === 'Metadata'
    }
    assert.equal(ofNobody({}), true)
    assert.equal(ofNobody({ users: [''] }), false)
    assert.equal(ofNobody({ userGroups: ['system:unauthenticated'] }), false)
  })

  test('the first rule that matches decides, and none means nothing', () => {
    const { rule } = readAuditPolicy({
      ...head,
      rules: [
        { level: 'None', verbs: ['list'] },
        { level: 'Request', ...events(['events']) },
        { level: 'RequestResponse', ...events() },
      ],
    })
    assert.equal(rule(ada, asked(list)).level, 'None')
    assert.equal(rule(ada, asked(one)).level, 'Request')
    assert.equal(rule(ada, asked(status)).level, 'RequestResponse')
    assert.equal(rule(ada, asked(health)).level, 'None')
  })

  test('stages to leave out are those of the policy and those of the rule', () => {
    const { rule } = readAuditPolicy({
      ...head,
      omitStages: ['RequestReceived'],
      rules: [{ level: 'Metadata', omitStages: ['Panic'] }],
    })
    assert.deepEqual([...rule(ada, asked(one)).omitStages].sort(), ['Panic', 'RequestReceived'])
  })

  test("a rule's own word on managed fields counts, else the policy's", () => {
    const omits = (own: Json, all: Json): boolean =>
      readAuditPolicy({
        ...head,
        omitManagedFields: all,
        rules: [{ level: 'Request', omitManagedFields: own }],
      }).rule(ada, asked(one)).omitManagedFields
    assert.deepEqual(
      [omits(null, null), omits(null, true), omits(false, true), omits(true, false)],
      [false, true, false, true],
    )
  })

  const wrong: readonly [Json, RegExp][] = [
    [null, /the document is not an object/],
    [[], /the document is not an object/],
    [{ rules: [] }, /it must be a Policy/],
    [
      { ...head, apiVersion: 'audit.k8s.io/v1beta1', rules: [{ level: 'None' }] },
      /audit.k8s.io\/v1/,
    ],
    [{ ...head }, /rules: there must be at least one/],
    [{ ...head, rules: {} }, /rules is not a list/],
    [{ ...head, rules: ['x'] }, /rules\[0\] is not an object/],
    [{ ...head, rules: [{}] }, /rules\[0\].level: write one of None, Metadata, Request, /],
    [{ ...head, rules: [{ level: 'metadata' }] }, /rules\[0\].level: write one of/],
    [
      { ...head, rules: [{ level: 'None', user: ['a'] }] },
      /rules\[0\].user: there is no such field/,
    ],
    [{ ...head, rules: [{ level: 'None', users: 'a' }] }, /rules\[0\].users is not a list/],
    [{ ...head, rules: [{ level: 'None', users: [1] }] }, /rules\[0\].users\[0\] is not a text/],
    [{ ...head, rules: [{ level: 'None', omitStages: ['Received'] }] }, /omitStages: write one of/],
    [{ ...head, omitStages: 'Panic', rules: [{ level: 'None' }] }, /omitStages is not a list/],
    [{ ...head, omitManagedFields: 'yes', rules: [{ level: 'None' }] }, /neither true nor false/],
    [{ ...head, rules: [{ level: 'None', nonResourceURLs: ['livez'] }] }, /starts with a slash/],
    [{ ...head, rules: [{ level: 'None', nonResourceURLs: ['/a*b'] }] }, /only be the last/],
    [
      { ...head, rules: [{ level: 'None', nonResourceURLs: ['/a'], namespaces: ['n'] }] },
      /not both/,
    ],
    [
      { ...head, rules: [{ level: 'None', resources: [{ group: 'a/v1' }] }] },
      /without its version/,
    ],
    [
      { ...head, rules: [{ level: 'None', resources: [{ resourceNames: ['a'] }] }] },
      /names need at least one resource/,
    ],
    [
      { ...head, rules: [{ level: 'None', resources: [{ resource: ['a'] }] }] },
      /rules\[0\].resources\[0\].resource: there is no such field/,
    ],
  ]
  for (const [document, message] of wrong) {
    test(`${JSON.stringify(document)} is refused`, () => {
      assert.throws(() => readAuditPolicy(document), { message })
    })
  }

  test('any document is read or refused, and nothing else happens', () => {
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

  test('a file holds exactly one policy', () => {
    const policy = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n'
    assert.equal(auditPolicyOf(`# ours\n---\n${policy}`).ruleCount, 1)
    assert.throws(() => auditPolicyOf(''), /there is nothing in it/)
    assert.throws(() => auditPolicyOf(`${policy}---\n${policy}`), /more than one document/)
    assert.throws(() => auditPolicyOf('rules: ['), /line 1/)
  })
})
