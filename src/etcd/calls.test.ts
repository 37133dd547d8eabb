import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, mock, test } from 'node:test'
import { CallFailure, type CallFailureDetails } from '../grpc/call-failure.ts'
import type { Session } from '../grpc/session.ts'
import { Calls } from './calls.ts'
import { EtcdError } from './errors.ts'
import { Member, Members } from './members.ts'
import type { Method } from './methods.ts'
import type { CallObserver, CallOptions, ConnectionState } from './protocol/protocol.ts'

// Tests the retry rules with fake members, whose replies the test sets, and a fake clock.

type Reply = { readonly response: string } | CallFailureDetails
type Callback = (failure: CallFailure | undefined, response?: string) => void

const fromServer = { origin: 'server', mayHaveBeenApplied: true } as const
const dropped: Reply = {
  code: 14,
  message: 'the connection was lost',
  origin: 'transport',
  mayHaveBeenApplied: true,
}
const noLeader: Reply = { code: 14, message: 'etcdserver: no leader', ...fromServer }
const noKey: Reply = { code: 3, message: 'etcdserver: key is not provided', ...fromServer }

const read: Method<string> = {
  path: '/r',
  isWrite: false,
  metadata: undefined,
  decode: String,
  maxBytes: 1000,
}
const write: Method<string> = { ...read, path: '/w', isWrite: true }
const message = Buffer.from('x')

/** A fake connection with replies set in advance; when they run out it does not respond. */
class FakeConnection {
  state: ConnectionState = 'ready'
  number = 1
  readonly replies: Reply[] = []
  calls = 0
  cancelled = 0
  pings = 0
  /** Ends the last call. */
  done: Callback = () => {}
  readonly session = {
    unary: (_options: unknown, done: Callback) => {
      this.calls++
      this.done = done
      const reply = this.replies.shift()
      if (reply !== undefined) queueMicrotask(() => respond(reply, done))
      return () => this.cancelled++
    },
  } as unknown as Session

  get current() {
    return this.state === 'ready' ? { session: this.session, number: this.number } : undefined
  }

  error = () => undefined
  ping(): void {
    this.pings++
  }
  renew(): void {}
  close(): void {}
}

function respond(reply: Reply, done: Callback): void {
  if ('response' in reply) done(undefined, reply.response)
  else done(new CallFailure(reply))
}

function setUp(count: number) {
  const clock = { time: 0, now: () => clock.time }
  const members = Array.from({ length: count }, () => new FakeConnection())
  let wake = () => {}
  const set = new Members((onChange) => {
    wake = onChange
    return members.map(
      (fake, index) => new Member({ name: `m${index}`, calls: fake, streams: fake, clock }),
    )
  })
  const closing = new AbortController()
  const seen: Parameters<CallObserver>[0][] = []
  const calls = new Calls({
    members: set,
    closing: closing.signal,
    clock,
    defaultTimeoutMs: 3_000,
    onCall: (call) => seen.push(call),
  })
  const advance = async (ms: number) => {
    for (let step = 0; step < ms; step += 50) {
      await settle()
      clock.time += 50
      mock.timers.tick(50)
    }
    await settle()
  }
  const responses = {
    read: async (...args: Parameters<typeof calls.read<string>>) =>
      (await calls.read(...args)).response,
    write: async (...args: Parameters<typeof calls.write<string>>) =>
      (await calls.write(...args)).response,
    overdueMs: () => calls.overdueMs(),
  }
  return {
    calls: responses,
    rawCalls: calls,
    members,
    seen,
    advance,
    closing,
    clock,
    wake: () => wake(),
  }
}

async function settle(): Promise<void> {
  for (let tick = 0; tick < 20; tick++) await Promise.resolve()
}

function failed(promise: Promise<unknown>): Promise<EtcdError> {
  return promise.then(
    () => assert.fail('it should have failed'),
    (error: unknown) => {
      assert.ok(error instanceof EtcdError, String(error))
      return error
    },
  )
}

describe('calls', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  test('a read that fails with a broken connection is sent to the next member', async () => {
    const { calls, members } = setUp(2)
    members[0]?.replies.push(dropped)
    members[1]?.replies.push({ response: 'yes' })
    assert.equal(await calls.read({ method: read, message }, undefined), 'yes')
  })

  test('a read is also sent to a second member when the first is silent for a second', async () => {
    const { calls, members, advance } = setUp(3)
    members[1]?.replies.push({ response: 'yes' })
    const reading = calls.read({ method: read, message }, undefined)
    await advance(950)
    assert.equal(members[1]?.calls, 0)
    await advance(100)
    assert.equal(await reading, 'yes')
    assert.equal(members[2]?.calls, 0)
    assert.equal(members[0]?.cancelled, 1)
  })

  test('a member that was silent is avoided by the next read', async () => {
    const { calls, members, advance } = setUp(2)
    members[1]?.replies.push({ response: '1' }, { response: '2' })
    const reading = calls.read({ method: read, message }, undefined)
    await advance(1_050)
    await reading
    assert.equal(await calls.read({ method: read, message }, undefined), '2')
    assert.equal(members[0]?.calls, 1)
  })

  test('a second member that was asked a moment ago is not suspect when the first responds', async () => {
    const { calls, members, advance } = setUp(2)
    const reading = calls.read({ method: read, message }, undefined)
    await advance(1_050)
    assert.deepEqual([members[0]?.pings, members[1]?.calls], [2, 1])
    members[0]?.done(undefined, 'late')
    assert.equal(await reading, 'late')
    assert.equal(members[1]?.pings, 0)
  })

  test('a read that is refused is not sent to another member', async () => {
    const { calls, members } = setUp(2)
    members[0]?.replies.push(noKey)
    const error = await failed(calls.read({ method: read, message }, undefined))
    assert.equal(error.kind, 'invalid')
    assert.equal(members[1]?.calls, 0)
  })

  test('a write that may have arrived is never retried', async () => {
    const { calls, members } = setUp(2)
    members[0]?.replies.push(dropped)
    const error = await failed(calls.write({ method: write, message }, undefined))
    assert.equal(error.kind, 'unavailable')
    assert.equal(error.mayHaveBeenApplied, true)
    assert.equal((members[0]?.calls ?? 0) + (members[1]?.calls ?? 0), 1)
  })

  test('a write without a response is sent once and ends at its deadline', async () => {
    const { calls, members, advance } = setUp(2)
    const writing = failed(calls.write({ method: write, message }, undefined))
    await advance(3_050)
    const error = await writing
    assert.equal(error.kind, 'timeout')
    assert.equal(error.mayHaveBeenApplied, true)
    assert.equal((members[0]?.calls ?? 0) + (members[1]?.calls ?? 0), 1)
    assert.equal(members[0]?.cancelled, 1)
  })

  test('the next write goes to another member while one waits for a silent member', async () => {
    const { calls, members, advance } = setUp(2)
    members[1]?.replies.push({ response: 'yes' })
    const first = failed(calls.write({ method: write, message }, undefined))
    await advance(1_050)
    assert.equal(await calls.write({ method: write, message }, undefined), 'yes')
    await advance(2_000)
    assert.equal((await first).kind, 'timeout')
  })

  test('a write that was refused without a leader is retried until there is one', async () => {
    const { calls, members, advance } = setUp(2)
    members[0]?.replies.push(noLeader, noLeader, { response: 'yes' })
    members[1]?.replies.push(noLeader, noLeader)
    const writing = calls.write({ method: write, message }, undefined)
    await advance(400)
    assert.equal(await writing, 'yes')
  })

  test('a write that was refused until its deadline has certainly not been applied', async () => {
    const { calls, members, advance } = setUp(1)
    members[0]?.replies.push(...Array.from({ length: 50 }, () => noLeader))
    const writing = failed(calls.write({ method: write, message }, undefined))
    await advance(3_050)
    const error = await writing
    assert.equal(error.kind, 'unavailable')
    assert.equal(error.mayHaveBeenApplied, false)
  })

  test('a write without a connection is sent once there is one', async () => {
    const { calls, members, advance, wake } = setUp(1)
    const member = members[0]
    assert.ok(member)
    member.state = 'failing'
    const lost = failed(calls.write({ method: write, message }, { timeoutMs: 500 }))
    await advance(550)
    assert.deepEqual(
      [(await lost).kind, (await lost).mayHaveBeenApplied, member.calls],
      ['unavailable', false, 0],
    )
    const writing = calls.write({ method: write, message }, undefined)
    await advance(100)
    member.state = 'ready'
    member.replies.push({ response: 'yes' })
    wake()
    assert.equal(await writing, 'yes')
  })

  test("the caller's signal cancels a read at once, and ends the wait for a write", async () => {
    const { calls, members } = setUp(1)
    const ending = new AbortController()
    const reading = failed(calls.read({ method: read, message }, { signal: ending.signal }))
    const writing = failed(calls.write({ method: write, message }, { signal: ending.signal }))
    await settle()
    ending.abort(new Error('went away'))
    assert.deepEqual(
      [(await reading).kind, (await reading).mayHaveBeenApplied],
      ['cancelled', false],
    )
    assert.deepEqual(
      [(await writing).kind, (await writing).mayHaveBeenApplied],
      ['cancelled', true],
    )
    assert.equal(members[0]?.cancelled, 2)
    const late = await failed(calls.write({ method: write, message }, { signal: ending.signal }))
    assert.deepEqual([late.kind, late.mayHaveBeenApplied], ['cancelled', false])
  })

  test('cancelIfSafe cancels reads and unsent writes, and waits for sent writes', async () => {
    const { calls, members, advance } = setUp(1)
    const member = members[0]
    assert.ok(member)
    const ending = new AbortController()
    const options = { cancelIfSafe: ending.signal }
    const reading = failed(calls.read({ method: read, message }, options))
    const sent = failed(calls.write({ method: write, message }, options))
    await settle()
    member.state = 'failing'
    const unsent = failed(calls.write({ method: write, message }, options))
    await settle()
    ending.abort()
    assert.deepEqual(
      [(await reading).kind, (await reading).mayHaveBeenApplied],
      ['unavailable', false],
    )
    assert.deepEqual(
      [(await unsent).kind, (await unsent).mayHaveBeenApplied],
      ['unavailable', false],
    )
    member.state = 'ready'
    const late = await failed(calls.write({ method: write, message }, options))
    assert.deepEqual([late.kind, late.mayHaveBeenApplied, member.calls], ['unavailable', false, 2])
    await advance(3_050)
    assert.deepEqual([(await sent).kind, (await sent).mayHaveBeenApplied], ['timeout', true])
  })

  test('a write that is refused after cancelIfSafe aborted is not retried', async () => {
    const { calls, members, advance } = setUp(1)
    const ending = new AbortController()
    members[0]?.replies.push(noLeader)
    const writing = failed(calls.write({ method: write, message }, { cancelIfSafe: ending.signal }))
    ending.abort()
    await advance(500)
    assert.deepEqual([(await writing).mayHaveBeenApplied, members[0]?.calls], [false, 1])
  })

  test('the observer sees calls that were sent or timed out without a connection', async () => {
    const { calls, members, seen, advance, closing } = setUp(1)
    const member = members[0]
    assert.ok(member)
    const reading = (options?: CallOptions) => calls.read({ method: read, message }, options)
    const writing = (options?: CallOptions) => calls.write({ method: write, message }, options)
    const disconnected = (call: typeof reading, options?: CallOptions) => {
      member.state = 'failing'
      return call(options)
    }
    const over = AbortSignal.abort()
    const ending = new AbortController()
    const nothing = () => {}
    member.replies.push({ response: 'yes' }, noKey)
    const failure = (path: string, ms = 0) => [{ path, ms, hasFailed: true }]
    for (const [make, meanwhile, expected] of [
      [() => reading(), nothing, [{ path: '/r', ms: 0, hasFailed: false }]],
      [() => writing(), nothing, failure('/w')],
      [() => reading({ cancelIfSafe: over }), nothing, []],
      [() => writing({ cancelIfSafe: over }), nothing, []],
      [() => reading({ signal: over }), nothing, []],
      [() => reading({ signal: ending.signal }), () => ending.abort(), failure('/r')],
      [() => writing({ timeoutMs: 500 }), () => advance(550), failure('/w', 500)],
      [() => disconnected(writing, { timeoutMs: 500 }), () => advance(550), failure('/w', 500)],
      [
        () => disconnected(reading),
        () => closing.abort(new EtcdError({ kind: 'cancelled', message: 'closed' })),
        [],
      ],
    ] as const) {
      seen.length = 0
      const ended = make().catch(() => {})
      await settle()
      await meanwhile()
      await ended
      assert.deepEqual(seen, expected, String(make))
    }
  })

  test('closing the client ends all calls and prevents new ones', async () => {
    const { calls, closing, members } = setUp(1)
    const writing = failed(calls.write({ method: write, message }, undefined))
    await settle()
    closing.abort(new EtcdError({ kind: 'cancelled', message: 'closed' }))
    assert.equal((await writing).kind, 'cancelled')
    assert.equal((await failed(calls.read({ method: read, message }, undefined))).kind, 'cancelled')
    assert.equal(members[0]?.calls, 1)
  })

  test('overdueMs counts from the deadline of the oldest call, and is 0 otherwise', async () => {
    const { calls, clock, closing } = setUp(1)
    assert.equal(calls.overdueMs(), 0)
    const stuck = failed(calls.read({ method: read, message }, { timeoutMs: 100 }))
    assert.equal(calls.overdueMs(), 0)
    clock.time += 600
    assert.equal(calls.overdueMs(), 500)
    closing.abort(new EtcdError({ kind: 'cancelled', message: 'closed' }))
    await stuck
    assert.equal(calls.overdueMs(), 0)
  })

  test('a write with connectionMax uses only connections up to that number', async () => {
    const { calls, members } = setUp(2)
    const [first, second] = members
    assert.ok(first !== undefined && second !== undefined)
    first.number = 7
    second.number = 3
    second.replies.push({ response: 'second' })
    const options = { connectionMax: 5 }
    assert.equal(await calls.write({ method: write, message }, options), 'second')
    second.number = 8
    const error = await failed(calls.write({ method: write, message }, options))
    assert.deepEqual([error.kind, error.mayHaveBeenApplied], ['outdated', false])
    assert.deepEqual([first.calls, second.calls], [0, 1])
  })

  test('a member that does not respond for a second is pinged', async () => {
    const { calls, members, advance } = setUp(1)
    const reading = failed(calls.read({ method: read, message }, undefined))
    await advance(950)
    assert.equal(members[0]?.pings, 0)
    await advance(100)
    assert.equal(members[0]?.pings, 2, 'one for each connection')
    await advance(2_000)
    assert.equal((await reading).kind, 'timeout')
  })

  test('a response has the number of its own connection, even after a renewal', async () => {
    const { rawCalls, members } = setUp(1)
    const [member] = members
    assert.ok(member !== undefined)
    member.number = 7
    const response = rawCalls.read({ method: read, message }, undefined)
    await settle()
    member.number = 8
    member.done(undefined, 'late')
    assert.equal((await response).connection, 7)
  })
})
