import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fieldsIn } from '../storage/event-fields.ts'
import { HistoryPolicy } from './history-policy.ts'
import { RetentionPolicy } from './policy.ts'
import type { RuleSubject } from './rule-selector.ts'

const DAY = 86_400_000

const policy = new HistoryPolicy(
  [
    {
      name: 'a',
      selector: { cluster: ['prod'], namespace: ['shop', 'pay'], type: ['Warning'] },
      keep: 'forever',
    },
    {
      name: 'b',
      selector: { reason: ['Pulled'], kind: ['Pod'], controller: ['kubelet'] },
      keep: 'never-archived',
    },
    { name: 'c', selector: { namespace: ['shop'] }, keep: 30 * DAY },
  ],
  90 * DAY,
)

function event(cluster: string, namespace: string, text: object = {}): RuleSubject {
  return { key: { cluster, namespace, name: 'e' }, fields: fieldsIn(text) }
}

test('history policy: the first rule that matches an event says how long it is kept', () => {
  const pulled = { reason: 'Pulled', regarding: { kind: 'Pod' }, reportingController: 'kubelet' }
  const cases: readonly (readonly [RuleSubject, string | number])[] = [
    [event('prod', 'pay', { type: 'Warning' }), 'forever'],
    [event('prod', 'shop', { ...pulled, type: 'Warning' }), 'forever'],
    [event('prod', 'shop', pulled), 'never-archived'],
    [event('test', 'pay', { type: 'Warning' }), 90 * DAY],
    [event('test', 'shop', { ...pulled, reportingController: 'x' }), 30 * DAY],
  ]
  for (const [subject, keep] of cases) assert.equal(policy.keepMsOf(subject), keep)
  assert.equal(new HistoryPolicy().keepMsOf(event('test', 'shop')), 365 * DAY)
})

test('history policy: the classes of a cluster are its rules, in order, as conditions on rows', () => {
  const exact = (...texts: readonly string[]) =>
    texts.map((text) => ({ text, isPrefix: false }) as const)
  const elsewhere = [
    {
      requires: {
        values: [
          { field: 'reason', operator: '=', patterns: exact('Pulled') },
          { field: 'regarding.kind', operator: '=', patterns: exact('Pod') },
          { field: 'reportingController', operator: '=', patterns: exact('kubelet') },
        ],
      },
      keepMs: 0,
    },
    { requires: { namespaces: exact('shop') }, keepMs: 30 * DAY },
    { requires: {}, keepMs: 90 * DAY },
  ]
  assert.deepEqual(policy.classesOf('test'), elsewhere)
  assert.deepEqual(policy.classesOf('prod'), [
    {
      requires: {
        namespaces: exact('shop', 'pay'),
        values: [{ field: 'type', operator: '=', patterns: exact('Warning') }],
      },
      keepMs: Number.POSITIVE_INFINITY,
    },
    ...elsewhere,
  ])
})

test('history policy: its rules are a part of the fingerprint, and their absence is not', () => {
  const fingerprint = (history?: HistoryPolicy) =>
    new RetentionPolicy({ lifetime: 1_000, history }).fingerprint
  assert.notEqual(fingerprint(policy), fingerprint())
  assert.notEqual(fingerprint(policy), fingerprint(new HistoryPolicy()))
  // As it was before there was history: replicas of both versions compare it.
  assert.equal(fingerprint(), 'f4515a0b')
})
