import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EtcdError, type EtcdErrorKind } from '../etcd/errors.ts'
import type { EndpointStatus } from '../etcd/protocol.ts'
import { type LogFields, silentLog } from '../lib/log.ts'
import { Presence } from './presence.ts'

const range = '/etcdserverpb.KV/Range'
/** So many silent looks are forgiven; the next one is not. */
const forgiven = 7

/** Looks and answers by hand, at half a second a look. */
class Bench {
  nowMs = 0
  members: readonly EndpointStatus[] = [member('ready')]
  /** What becomes of each question; by default it stays open. */
  reply: () => Promise<unknown> = () => new Promise(() => {})
  questions = 0
  aways = 0
  readonly lines: [string, LogFields | undefined][] = []
  readonly presence: Presence

  constructor() {
    const note = (text: string, fields?: LogFields) => this.lines.push([text, fields])
    this.presence = new Presence({
      ask: () => {
        this.questions++
        return this.reply()
      },
      members: () => this.members,
      log: { ...silentLog, info: note, warn: note },
      clock: { now: () => this.nowMs },
    })
    this.presence.onAway(() => this.aways++)
  }

  async look(times: number): Promise<void> {
    for (let count = 0; count < times; count++) {
      this.nowMs += 500
      this.presence.look()
      await new Promise(setImmediate)
    }
  }

  /** As when a call has ended. */
  call(path = range, hasFailed = false): void {
    this.presence.onCall({ path, ms: 1, hasFailed })
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

describe('presence', () => {
  const rounds: Record<string, { run(bench: Bench): unknown; isAway: boolean }> = {
    'silent looks are forgiven up to a number': { run: (b) => b.look(forgiven), isAway: false },
    'with one more etcd is away': { run: (b) => b.look(forgiven + 1), isAway: true },
    'an answer in between, and they count anew': {
      run: async (bench) => {
        await bench.look(forgiven)
        bench.call()
        await bench.look(1 + forgiven)
      },
      isAway: false,
    },
    'a transaction is as good an answer': {
      run: async (bench) => {
        await bench.look(forgiven)
        bench.call('/etcdserverpb.KV/Txn')
        await bench.look(1)
      },
      isAway: false,
    },
    'what one member answers alone proves nothing': {
      run: async (bench) => {
        await bench.look(forgiven)
        bench.call('/etcdserverpb.Maintenance/Status')
        await bench.look(1)
      },
      isAway: true,
    },
    'nor does a call that failed': {
      run: async (bench) => {
        await bench.look(forgiven)
        bench.call(range, true)
        await bench.look(1)
      },
      isAway: true,
    },
    'a process that stood still has not looked': {
      run: async (bench) => {
        await bench.look(1)
        bench.nowMs += 60_000
        await bench.look(1)
      },
      isAway: false,
    },
    'an answer brings it back before the next look': {
      run: async (bench) => {
        await bench.look(forgiven + 3)
        bench.call()
      },
      isAway: false,
    },
    'back, and as patient as before': {
      run: async (bench) => {
        await bench.look(forgiven + 3)
        bench.call()
        await bench.look(1 + forgiven)
      },
      isAway: false,
    },
    'a refusal by etcd is an answer': {
      run: async (bench) => {
        refuses('unauthenticated')(bench)
        await bench.look(3 * forgiven)
      },
      isAway: false,
    },
  }
  for (const kind of ['unavailable', 'timeout', 'cancelled'] as const) {
    rounds[`a question that ends as ${kind} has no answer`] = {
      run: async (bench) => {
        refuses(kind)(bench)
        await bench.look(forgiven + 1)
      },
      isAway: true,
    }
  }
  for (const [name, { run, isAway }] of Object.entries(rounds)) {
    test(name, async () => {
      const bench = new Bench()
      await run(bench)
      assert.equal(bench.presence.isAway, isAway)
      assert.equal(bench.presence.ending.aborted, isAway)
      assert.equal(bench.presence.refusal() !== undefined, isAway)
    })
  }

  test('a question is put at each look before which nothing was heard', async () => {
    const bench = new Bench()
    bench.call()
    await bench.look(1)
    assert.equal(bench.questions, 0)
    await bench.look(forgiven + 5)
    assert.equal(bench.questions, forgiven + 5)
  })

  test('an outage is told once, with its length, and so is its end', async () => {
    const bench = new Bench()
    const { presence } = bench
    for (const outages of [1, 2]) {
      bench.call()
      await bench.look(1)
      const { ending } = presence
      await bench.look(forgiven + 4)
      assert.deepEqual([bench.aways, presence.outages], [outages, outages])
      assert.equal(presence.awayMs, (forgiven + 4) * 500)
      bench.call()
      bench.call()
      assert.equal(presence.awayMs, 0)
      assert.ok(ending.aborted)
      assert.notEqual(presence.ending, ending)
    }
    const away =
      'etcd does not answer; until it does, writes and fresh reads are refused, watches and reads with resourceVersion=0 go on'
    const silent = { reason: 'it is connected, but silent', err: undefined }
    const outage = [
      [away, silent],
      ['etcd answers again', { seconds: 5.5 }],
    ]
    assert.deepEqual(bench.lines, [...outage, ...outage])
  })

  test('the refusal says for how long, what is wrong, and when to come back', async () => {
    const bench = new Bench()
    bench.members = [member('failing', 'refused')]
    await bench.look(forgiven + 1)
    bench.nowMs = 12_300
    const cause = new Error('x')
    const text = 'etcd has not answered for 12 s: it cannot be reached'
    const { kind, message, reason, retryAfterMs, cause: told } = bench.presence.refusal(cause) ?? {}
    assert.deepEqual(
      { kind, message, reason, retryAfterMs, told },
      { kind: 'unavailable', message: text, reason: text, retryAfterMs: 1_000, told: cause },
    )
  })

  for (const [members, expected] of [
    [[member('connecting')], 'it cannot be reached'],
    [
      [member('failing', 'x'), member('failing'), member('idle')],
      'none of its 3 members can be reached',
    ],
    [[member('ready'), member('failing', 'x')], 'it is connected, but silent'],
    [
      [member('failing'), member('ready', 'etcdserver: no leader')],
      'it has no leader, as too few of its members are up',
    ],
    // What a member said before it was lost says nothing of now.
    [[member('failing', 'etcdserver: no leader'), member('ready')], 'it is connected, but silent'],
  ] as const) {
    const states = members.map(({ state, lastError }) => `${state} ${lastError?.message ?? ''}`)
    test(`of members that are ${states.join(', ')}: ${expected}`, () => {
      const bench = new Bench()
      bench.members = members
      assert.equal(bench.presence.describe(), `etcd has not answered for 0 s: ${expected}`)
    })
  }
})
