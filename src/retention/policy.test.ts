import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../storage/errors.ts'
import { type EventFields, fieldsIn } from '../storage/event-fields.ts'
import { type Keepable, RetentionPolicy } from './policy.ts'

const noFields: EventFields = fieldsIn({})

function event(namespace: string, fields: Partial<EventFields> = {}): Keepable {
  return { key: { cluster: 'local', namespace, name: 'e' }, fields: { ...noFields, ...fields } }
}

const unreadable: Keepable = {
  key: { cluster: 'local', namespace: 'prod', name: 'e' },
  get fields(): never {
    throw new StorageError({ kind: 'corrupt', message: 'not JSON' })
  },
}

test('policy: a single rule applies to every event without parsing it', () => {
  const policy = RetentionPolicy.uniform(5_000)
  assert.equal(policy.lifetimeOf(unreadable), 5_000)
  assert.deepEqual([policy.isUniform, policy.shortestMs, policy.longestMs], [true, 5_000, 5_000])
  const keepAll = RetentionPolicy.uniform('never')
  assert.equal(keepAll.lifetimeOf(event('a')), 'never')
  assert.deepEqual([keepAll.shortestMs, keepAll.longestMs], [undefined, 0])
})

test('policy: the first rule whose values all match applies', () => {
  const policy = new RetentionPolicy([
    { selector: { namespace: 'prod', type: 'Warning' }, lifetime: 'never' },
    { selector: { reason: 'Pulled' }, lifetime: 1_000 },
    { selector: { reportingController: 'kubelet', type: 'Normal' }, lifetime: 2_000 },
    { selector: { namespace: 'prod' }, lifetime: 3_000 },
    { lifetime: 4_000 },
  ])
  const cases: readonly (readonly [Keepable, number | 'never'])[] = [
    [event('prod', { type: 'Warning', reason: 'Pulled' }), 'never'],
    [event('test', { type: 'Warning', reason: 'Pulled' }), 1_000],
    [event('prod', { type: 'Normal', reportingController: 'kubelet' }), 2_000],
    [event('test', { type: 'Warning', reportingController: 'kubelet' }), 4_000],
    [event('prod'), 3_000],
    [event('test'), 4_000],
  ]
  for (const [stored, lifetime] of cases) assert.equal(policy.lifetimeOf(stored), lifetime)
  assert.deepEqual([policy.isUniform, policy.shortestMs], [false, 1_000])
})

test('policy: an unreadable event matches only rules that require no values', () => {
  const policy = new RetentionPolicy([
    { selector: { type: 'Normal' }, lifetime: 'never' },
    { selector: { namespace: 'prod' }, lifetime: 3_000 },
    { lifetime: 4_000 },
  ])
  assert.equal(policy.lifetimeOf(unreadable), 3_000)
})

test('policy: a table that would keep events by mistake is rejected', () => {
  const selector = { namespace: 'a' }
  assert.throws(() => new RetentionPolicy([]), RangeError)
  assert.throws(() => new RetentionPolicy([{ selector, lifetime: 1 }]), RangeError)
  for (const lifetime of [0, -1, Number.NaN]) {
    assert.throws(() => RetentionPolicy.uniform(lifetime), RangeError)
  }
})
