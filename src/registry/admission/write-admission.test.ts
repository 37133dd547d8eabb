import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Event } from '../../api/event.ts'
import { StorageError } from '../../storage/errors.ts'
import { byteLimits, EventLimits } from './event-limits.ts'
import { StoredBytes, type StoredBytesResource } from './stored-bytes.ts'
import {
  type AdmittedWrite,
  MirrorThrottled,
  refundFailed,
  WriteAdmission,
  type Writer,
} from './write-admission.ts'

const BUDGET = 1_000_000
const event: Event = { metadata: { namespace: 'a', name: 'e' }, type: 'Normal' }
const writeOf = (bytes: number): AdmittedWrite => ({
  cluster: 'c',
  event,
  bytes,
  growth: bytes,
})
const writer = (): Writer => ({ account: 'ada', payer: 'ada' })

interface Admitted {
  readonly admission: WriteAdmission
  readonly refusals: readonly string[]
  readonly counted: () => number
}

function admissionOf({
  name = 'memory',
  used = () => 0,
  bytesPerSecond = 0,
}: {
  readonly name?: StoredBytesResource['name']
  readonly used?: () => number
  readonly bytesPerSecond?: number
}): Admitted {
  const refusals: string[] = []
  let counted = 0
  const now = () => 0
  const resource = { name, budgetBytes: () => BUDGET, usedBytes: used }
  const limitsOf = (...types: ('User' | 'Cluster')[]) =>
    new EventLimits({ limits: byteLimits(types, bytesPerSecond), now })
  const admission = new WriteAdmission({
    limits: limitsOf('User'),
    mirrorLimits: limitsOf('Cluster'),
    stored: new StoredBytes({ resources: [resource], now }),
    sources: {
      wrote: () => {
        counted++
      },
    },
    onRefused: (type, unit) => refusals.push(`${type} ${unit}`),
  })
  return { admission, refusals, counted: () => counted }
}

describe('WriteAdmission', () => {
  test('charges a request once, however often it is admitted', () => {
    const { admission, counted } = admissionOf({})
    const ada = writer()
    for (let count = 0; count < 100; count++) admission.admit(ada, writeOf(0.1 * BUDGET))
    assert.equal(counted(), 1)
  })

  test('says who uses too much of what', () => {
    for (const [name, what] of [
      ['memory', 'memory for events is short'],
      ['etcd', 'etcd is filling up'],
    ] as const) {
      const { admission, refusals } = admissionOf({ name })
      assert.throws(() => admission.admit(writer(), writeOf(0.6 * BUDGET)), {
        code: 429,
        message: `this user has stored too many bytes (the limit is reduced while ${what}), please try again later.`,
      })
      assert.throws(() => admission.admitMirrored({ ...writeOf(0.9 * BUDGET) }), {
        message: `this cluster has its share of the space that ${name} has for events`,
      })
      assert.deepEqual(refusals, [`User ${name}`])
    }
  })

  test('says that nothing is free', () => {
    const { admission } = admissionOf({ used: () => BUDGET })
    assert.throws(() => admission.admit(writer(), writeOf(1)), /the memory for events is full/)
    assert.throws(() => admission.admitMirrored(writeOf(1)), MirrorThrottled)
  })

  test('checks the share before the rate, and charges neither on rejection', () => {
    const { admission, refusals, counted } = admissionOf({ bytesPerSecond: 1 })
    assert.throws(() => admission.admit(writer(), writeOf(0.6 * BUDGET)), /stored too many/)
    // One write may exceed the burst.
    admission.admit(writer(), writeOf(0.2 * BUDGET))
    assert.throws(() => admission.admit(writer(), writeOf(1)), /writes too many bytes/)
    assert.deepEqual(refusals, ['User memory', 'User bytes'])
    assert.equal(counted(), 1)
  })

  test('refunds a failed write unless it may have been applied', () => {
    const { admission } = admissionOf({})
    const failed = (kind: 'unavailable' | 'timeout'): void => {
      const ada = writer()
      admission.admit(ada, writeOf(0.4 * BUDGET))
      refundFailed(ada, new StorageError({ kind, message: 'none' }))
    }
    for (let count = 0; count < 10; count++) failed('unavailable')
    failed('timeout')
    assert.throws(() => failed('unavailable'), { code: 429 })
  })
})
