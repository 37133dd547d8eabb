import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../storage/errors.ts'
import { type EventFields, fieldsIn } from '../storage/event-fields.ts'
import {
  type Lifetime,
  type RetentionBudget,
  RetentionPolicy,
  type RetentionRule,
} from './policy.ts'
import type { RuleSelector, RuleSubject } from './rule-selector.ts'

const noFields: EventFields = fieldsIn({})

function event(namespace: string, fields: Partial<EventFields> = {}): RuleSubject {
  return { key: { cluster: 'local', namespace, name: 'e' }, fields: { ...noFields, ...fields } }
}

const unreadable: RuleSubject = {
  key: { cluster: 'local', namespace: 'prod', name: 'e' },
  get fields(): never {
    throw new StorageError({ kind: 'corrupt', message: 'not JSON' })
  },
}

test('policy: applies a single rule to every event without parsing it', () => {
  const policy = RetentionPolicy.uniform(5_000)
  assert.equal(policy.lifetimeOf(unreadable), 5_000)
  assert.deepEqual([policy.isUniform, policy.shortestMs, policy.longestMs], [true, 5_000, 5_000])
  const keepAll = RetentionPolicy.uniform('never')
  assert.equal(keepAll.lifetimeOf(event('a')), 'never')
  assert.deepEqual([keepAll.shortestMs, keepAll.longestMs], [undefined, 0])
})

const rule = (name: string, selector: RuleSelector, lifetime: Lifetime): RetentionRule => ({
  name,
  selector,
  lifetime,
})

test('policy: uses values that are known without parsing', () => {
  const policy = new RetentionPolicy({
    rules: [
      rule('type', { type: ['Warning'] }, 1_000),
      rule('reason', { reason: ['Pulled'] }, 2_000),
      rule('kind', { kind: ['Pod'] }, 3_000),
      rule('controller', { controller: ['kubelet'] }, 4_000),
    ],
    lifetime: 5_000,
  })
  const none = { type: 'Normal', reason: '', kind: 'pod', reportingController: '' }
  const rules = [
    { type: 'Warning' },
    { reason: 'Pulled' },
    { kind: 'Pod' },
    { reportingController: 'kubelet' },
    {},
  ].map((values) => {
    const { key } = unreadable
    const parsed = () => assert.fail('it was parsed')
    const keepable = {
      key,
      values: { ...none, ...values },
      get fields(): never {
        return parsed()
      },
    }
    return policy.ruleOf(keepable).name
  })
  assert.deepEqual(rules, ['type', 'reason', 'kind', 'controller', 'default'])
})

test('policy: applies the first rule whose values all match', () => {
  const policy = new RetentionPolicy({
    rules: [
      rule('a', { namespace: ['prod'], type: ['Warning'] }, 'never'),
      rule('b', { reason: ['Pulled', 'Pulling'] }, 1_000),
      rule('c', { controller: ['kubelet'], type: ['Normal'] }, 2_000),
      rule('d', { namespace: ['prod', 'shop'] }, 3_000),
    ],
    lifetime: 4_000,
  })
  const cases: readonly (readonly [RuleSubject, string])[] = [
    [event('prod', { type: 'Warning', reason: 'Pulled' }), 'a'],
    [event('test', { type: 'Warning', reason: 'Pulled' }), 'b'],
    [event('test', { reason: 'Pulling' }), 'b'],
    [event('prod', { type: 'Normal', reportingController: 'kubelet' }), 'c'],
    [event('test', { type: 'Warning', reportingController: 'kubelet' }), 'default'],
    [event('prod'), 'd'],
    [event('shop'), 'd'],
    [event('test'), 'default'],
  ]
  for (const [stored, name] of cases) {
    const found = policy.ruleOf(stored)
    assert.equal(found.name, name)
    assert.equal(policy.lifetimeOf(stored), found.lifetime)
  }
  assert.deepEqual(
    [policy.isUniform, policy.shortestMs, policy.longestMs, policy.defaultLifetime],
    [false, 1_000, 4_000, 4_000],
  )
  assert.equal(policy.keepsForever, true)
})

test('policy: compares every field of a rule with the right field of the event', () => {
  const cluster = 'here'
  const key = { cluster, namespace: 'ns', name: 'e' }
  const fields: EventFields = {
    ...noFields,
    type: 'Warning',
    reason: 'Failed',
    reportingController: 'kubelet',
    sourceComponent: 'source',
    regarding: { ...noFields.regarding, kind: 'Pod', namespace: 'other', name: 'Failed' },
  }
  const matching = {
    cluster: ['here'],
    namespace: ['ns'],
    type: ['Warning'],
    reason: ['Failed'],
    kind: ['Pod'],
    controller: ['kubelet'],
  }
  const matches = (selector: RuleSelector) =>
    new RetentionPolicy({ rules: [rule('r', selector, 1)], lifetime: 2 }).lifetimeOf({
      key,
      fields,
    }) === 1
  assert.ok(matches(matching))
  for (const field of Object.keys(matching) as (keyof typeof matching)[]) {
    assert.ok(matches({ [field]: matching[field] }), field)
    assert.ok(!matches({ ...matching, [field]: ['else'] }), field)
    assert.ok(matches({ ...matching, [field]: ['else', ...matching[field]] }), field)
  }
})

test('policy: matches an unreadable event only with rules that require no values', () => {
  const policy = new RetentionPolicy({
    rules: [rule('a', { type: ['Normal'] }, 'never'), rule('b', { namespace: ['prod'] }, 3_000)],
    lifetime: 4_000,
  })
  assert.equal(policy.lifetimeOf(unreadable), 3_000)
})

test('policy: rejects a lifetime that is not above 0', () => {
  for (const lifetime of [0, -1, Number.NaN]) {
    assert.throws(() => RetentionPolicy.uniform(lifetime), RangeError)
    const rules = [rule('a', {}, lifetime)]
    assert.throws(() => new RetentionPolicy({ rules, lifetime: 1 }), RangeError)
  }
})

test('policy: applies the first budget that matches a namespace or a cluster', () => {
  const budget = (name: string, rest: Partial<RetentionBudget>): RetentionBudget => ({
    name,
    per: 'Namespace',
    cluster: undefined,
    namespace: undefined,
    events: 1,
    bytes: undefined,
    ...rest,
  })
  const policy = new RetentionPolicy({
    lifetime: 1,
    budgets: [
      budget('prod-cluster', { per: 'Cluster', cluster: ['prod'] }),
      budget('shop', { namespace: ['shop', 'cart'] }),
      budget('prod-namespaces', { cluster: ['prod'] }),
    ],
  })
  const nameOf = (cluster: string, namespace?: string) => policy.budgetOf(cluster, namespace)?.name
  assert.deepEqual(
    [
      nameOf('prod'),
      nameOf('test'),
      nameOf('prod', 'shop'),
      nameOf('test', 'cart'),
      nameOf('prod', 'other'),
      nameOf('test', 'other'),
    ],
    ['prod-cluster', undefined, 'shop', 'shop', 'prod-namespaces', undefined],
  )
})

test('policy: has the same fingerprint only for the same policy', () => {
  const of = (lifetime: Lifetime, events: number) =>
    new RetentionPolicy({
      rules: [rule('a', { type: ['Normal'] }, lifetime)],
      lifetime: 4_000,
      budgets: [
        {
          name: 'b',
          per: 'Cluster',
          cluster: undefined,
          namespace: undefined,
          events,
          bytes: undefined,
        },
      ],
    }).fingerprint
  assert.match(of(1, 1), /^[0-9a-f]{8}$/)
  assert.equal(of(1, 1), of(1, 1))
  assert.equal(new Set([of(1, 1), of(2, 1), of('never', 1), of(1, 2)]).size, 4)
})
