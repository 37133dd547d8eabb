import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EtcdError, type EtcdErrorKind } from '../../etcd/errors.ts'
import type { EndpointStatus } from '../../etcd/protocol/protocol.ts'
import { type LogFields, silentLog } from '../../lib/log/log.ts'
import { EtcdAvailability } from './etcd-availability.ts'

const range = '/etcdserverpb.KV/Range'
/** So many checks without a response are tolerated; the next one begins an outage. */
const tolerated = 7

/** Checks and responses triggered by the test, with half a second per check. */
class Bench {
  nowMs = 0
  members: readonly EndpointStatus[] = [member('ready')]
  /** The result of each probe; by default it stays pending. */
  reply: () => Promise<unknown> = () => new Promise(() => {})
  probes = 0
  outages = 0
  readonly lines: [string, LogFields | undefined][] = []
  readonly availability: EtcdAvailability

  constructor() {
    const note = (text: string, fields?: LogFields) => this.lines.push([text, fields])
    this.availability = new EtcdAvailability({
      probe: () => {
        this.probes++
        return this.reply()
      },
      members: () => this.members,
      log: { ...silentLog, info: note, warn: note },
      clock: { now: () => this.nowMs },
    })
    this.availability.onOutage(() => this.outages++)
  }

  async check(times: number): Promise<void> {
    for (let count = 0; count < times; count++) {
      this.nowMs += 500
      this.availability.check()
      await new Promise(setImmediate)
    }
  }

  /** Reports a call that has ended. */
  call(path = range, hasFailed = false): void {
    this.availability.onCall({ path, ms: 1, hasFailed })
  }
}

function member(state: EndpointStatus['state'], message?: string): EndpointStatus {
  const lastError = message === undefined ? undefined : etcdError('unavailable', message)
  return { endpoint: 'e', state, lastError }
}

function etcdError(kind: EtcdErrorKind, message = 'x'): EtcdError {
  return new EtcdError({ kind, message })
}

function refuses(kind: EtcdErrorKind): (bench: Bench) => void {
  return (bench) => {
    bench.reply = () => Promise.reject(etcdError(kind))
  }
}

describe('etcd availability', () => {
  const cases: Record<string, { run(bench: Bench): unknown; isUnavailable: boolean }> = {
    'checks without a response are tolerated up to a number': {
      run: (bench) => bench.check(tolerated),
      isUnavailable: false,
    },
    'one more check without a response begins an outage': {
      run: (bench) => bench.check(tolerated + 1),
      isUnavailable: true,
    },
    'a response in between resets the count': {
      run: async (bench) => {
        await bench.check(tolerated)
        bench.call()
        await bench.check(1 + tolerated)
      },
      isUnavailable: false,
    },
    'a transaction counts as a response': {
      run: async (bench) => {
        await bench.check(tolerated)
        bench.call('/etcdserverpb.KV/Txn')
        await bench.check(1)
      },
      isUnavailable: false,
    },
    'a response that needs no majority does not count': {
      run: async (bench) => {
        await bench.check(tolerated)
        bench.call('/etcdserverpb.Maintenance/Status')
        await bench.check(1)
      },
      isUnavailable: true,
    },
    'a failed call does not count': {
      run: async (bench) => {
        await bench.check(tolerated)
        bench.call(range, true)
        await bench.check(1)
      },
      isUnavailable: true,
    },
    'a process that was stopped has made no checks': {
      run: async (bench) => {
        await bench.check(1)
        bench.nowMs += 60_000
        await bench.check(1)
      },
      isUnavailable: false,
    },
    'a response ends the outage before the next check': {
      run: async (bench) => {
        await bench.check(tolerated + 3)
        bench.call()
      },
      isUnavailable: false,
    },
    'the count starts at zero after an outage': {
      run: async (bench) => {
        await bench.check(tolerated + 3)
        bench.call()
        await bench.check(1 + tolerated)
      },
      isUnavailable: false,
    },
    'a refusal by etcd counts as a response': {
      run: async (bench) => {
        refuses('unauthenticated')(bench)
        await bench.check(3 * tolerated)
      },
      isUnavailable: false,
    },
  }
  for (const kind of ['unavailable', 'timeout', 'cancelled'] as const) {
    cases[`a probe that fails with ${kind} does not count as a response`] = {
      run: async (bench) => {
        refuses(kind)(bench)
        await bench.check(tolerated + 1)
      },
      isUnavailable: true,
    }
  }
  for (const [name, { run, isUnavailable }] of Object.entries(cases)) {
    test(name, async () => {
      const bench = new Bench()
      await run(bench)
      assert.equal(bench.availability.isUnavailable, isUnavailable)
      assert.equal(bench.availability.outageSignal.aborted, isUnavailable)
      assert.equal(bench.availability.refusal() !== undefined, isUnavailable)
    })
  }

  test('a check sends a probe if there was no response since the last check', async () => {
    const bench = new Bench()
    bench.call()
    await bench.check(1)
    assert.equal(bench.probes, 0)
    await bench.check(tolerated + 5)
    assert.equal(bench.probes, tolerated + 5)
  })

  test('the beginning and the end of an outage are logged once, with its length', async () => {
    const bench = new Bench()
    const { availability } = bench
    for (const outages of [1, 2]) {
      bench.call()
      await bench.check(1)
      const { outageSignal } = availability
      await bench.check(tolerated + 4)
      assert.deepEqual([bench.outages, availability.outages], [outages, outages])
      assert.equal(availability.outageMs, (tolerated + 4) * 500)
      bench.call()
      bench.call()
      assert.equal(availability.outageMs, 0)
      assert.ok(outageSignal.aborted)
      assert.notEqual(availability.outageSignal, outageSignal)
    }
    const down =
      'etcd does not respond: writes and consistent reads are rejected until it does; watches and reads with resourceVersion=0 continue'
    const silent = { reason: 'it is connected but does not respond', err: undefined }
    const outage = [
      [down, silent],
      ['etcd responds again', { seconds: 5.5 }],
    ]
    assert.deepEqual(bench.lines, [...outage, ...outage])
  })

  test('the refusal contains the length of the outage, its cause and a retry hint', async () => {
    const bench = new Bench()
    bench.members = [member('failing', 'refused')]
    await bench.check(tolerated + 1)
    bench.nowMs = 12_300
    const cause = new Error('x')
    const text = 'etcd has not responded for 12 s: it cannot be reached'
    const refusal = bench.availability.refusal(cause)
    const { kind, message, reason, retryAfterMs } = refusal ?? {}
    assert.deepEqual(
      { kind, message, reason, retryAfterMs, cause: refusal?.cause },
      { kind: 'unavailable', message: text, reason: text, retryAfterMs: 1_000, cause },
    )
  })

  for (const [members, expected] of [
    [[member('connecting')], 'it cannot be reached'],
    [
      [member('failing', 'x'), member('failing'), member('connecting')],
      'none of its 3 members can be reached',
    ],
    [[member('ready'), member('failing', 'x')], 'it is connected but does not respond'],
    [
      [member('failing'), member('ready', 'etcdserver: no leader')],
      'it has no leader: too few of its members are up',
    ],
    // The error of a member that was lost since does not count.
    [
      [member('failing', 'etcdserver: no leader'), member('ready')],
      'it is connected but does not respond',
    ],
  ] as const) {
    const states = members.map(({ state, lastError }) => `${state} ${lastError?.message ?? ''}`)
    test(`the cause with members that are ${states.join(', ')} is: ${expected}`, () => {
      const bench = new Bench()
      bench.members = members
      assert.equal(bench.availability.describe(), `etcd has not responded for 0 s: ${expected}`)
    })
  }
})
