import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import type { Client } from '@grpc/grpc-js'
import { Calls } from './calls.ts'
import type { ConnectionState } from './connection.ts'
import { Endpoint, EndpointSet } from './endpoints.ts'
import { EtcdError } from './errors.ts'
import type { Method } from './grpc.ts'
import type { CallObserver, CallOptions } from './protocol.ts'
import { RenewableLink } from './renewable-link.ts'

// The rules of what is asked again, with members that answer on command and time moved by hand.

type Reply = { readonly answer: string } | { readonly code: number; readonly details: string }
type Callback = (error: unknown, answer?: string) => void

const dropped: Reply = { code: 14, details: 'Connection dropped' }
const noLeader: Reply = { code: 14, details: 'etcdserver: no leader' }

const read: Method<string> = { path: '/r', write: false, needsLeader: true, decode: String }
const write: Method<string> = { path: '/w', write: true, needsLeader: true, decode: String }
const message = Buffer.from('x')

/** A member whose replies are given in advance; when they run out it stays silent. */
class FakeMember {
  state: ConnectionState = 'ready'
  readonly lastError = undefined
  isSilent = false
  noteAnswer(): void {}
  number = 1
  readonly lost = new AbortController().signal
  readonly replies: Reply[] = []
  calls = 0
  cancelled = 0
  readonly client = {
    makeUnaryRequest: (...args: unknown[]) => {
      this.calls++
      const done = args.at(-1) as Callback
      const reply = this.replies.shift()
      if (reply !== undefined) {
        queueMicrotask(() => ('answer' in reply ? done(null, reply.answer) : done(reply)))
      }
      return { cancel: () => this.cancelled++ }
    },
  } as unknown as Client
  close(): void {}
}

function setUp(count: number) {
  mock.timers.reset()
  mock.timers.enable({ apis: ['setTimeout'] })
  const clock = { time: 0, now: () => clock.time }
  const members = Array.from({ length: count }, () => new FakeMember())
  let wake = () => {}
  const endpoints = new EndpointSet((onChange) => {
    wake = onChange
    return members.map((member, index) => {
      return new Endpoint({ name: `m${index}`, calls: member, streams: member, clock })
    })
  })
  const closing = new AbortController()
  const seen: Parameters<CallObserver>[0][] = []
  const calls = new Calls({
    endpoints,
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
  const answers = {
    read: async (...args: Parameters<typeof calls.read<string>>) =>
      (await calls.read(...args)).answer,
    write: async (...args: Parameters<typeof calls.write<string>>) =>
      (await calls.write(...args)).answer,
    overdueMs: () => calls.overdueMs(),
  }
  return { calls: answers, members, seen, advance, closing, clock, wake: () => wake() }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
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

test('calls: a read that meets a broken connection is asked of the next member', async () => {
  const { calls, members } = setUp(2)
  members[0]?.replies.push(dropped)
  members[1]?.replies.push({ answer: 'yes' })
  assert.equal(await calls.read({ method: read, message }, undefined), 'yes')
})

test('calls: a read is asked of a second member when the first stays silent for a second', async () => {
  const { calls, members, advance } = setUp(3)
  members[1]?.replies.push({ answer: 'yes' })
  const reading = calls.read({ method: read, message }, undefined)
  await advance(950)
  assert.equal(members[1]?.calls, 0)
  await advance(100)
  assert.equal(await reading, 'yes')
  assert.equal(members[2]?.calls, 0)
  assert.equal(members[0]?.cancelled, 1)
})

test('calls: after that the silent member is passed over', async () => {
  const { calls, members, advance } = setUp(2)
  members[1]?.replies.push({ answer: '1' }, { answer: '2' })
  const reading = calls.read({ method: read, message }, undefined)
  await advance(1_050)
  await reading
  assert.equal(await calls.read({ method: read, message }, undefined), '2')
  assert.equal(members[0]?.calls, 1)
})

test('calls: an answer that is a refusal is not asked of anybody else', async () => {
  const { calls, members } = setUp(2)
  members[0]?.replies.push({ code: 3, details: 'etcdserver: key is not provided' })
  const error = await failed(calls.read({ method: read, message }, undefined))
  assert.equal(error.kind, 'invalid')
  assert.equal(members[1]?.calls, 0)
})

test('calls: a write that may have arrived is never sent again', async () => {
  const { calls, members } = setUp(2)
  members[0]?.replies.push(dropped)
  const error = await failed(calls.write({ method: write, message }, undefined))
  assert.equal(error.kind, 'unavailable')
  assert.equal(error.maybeApplied, true)
  assert.equal((members[0]?.calls ?? 0) + (members[1]?.calls ?? 0), 1)
})

test('calls: a write that stays without an answer ends at its deadline, sent once', async () => {
  const { calls, members, advance } = setUp(2)
  const writing = failed(calls.write({ method: write, message }, undefined))
  await advance(3_050)
  const error = await writing
  assert.equal(error.kind, 'timeout')
  assert.equal(error.maybeApplied, true)
  assert.equal((members[0]?.calls ?? 0) + (members[1]?.calls ?? 0), 1)
  assert.equal(members[0]?.cancelled, 1)
})

test('calls: the next write goes elsewhere while one waits for a silent member', async () => {
  const { calls, members, advance } = setUp(2)
  members[1]?.replies.push({ answer: 'yes' })
  const first = failed(calls.write({ method: write, message }, undefined))
  await advance(1_050)
  assert.equal(await calls.write({ method: write, message }, undefined), 'yes')
  await advance(2_000)
  assert.equal((await first).kind, 'timeout')
})

test('calls: a write that was refused for want of a leader is sent again until there is one', async () => {
  const { calls, members, advance } = setUp(2)
  members[0]?.replies.push(noLeader, noLeader, { answer: 'yes' })
  members[1]?.replies.push(noLeader, noLeader)
  const writing = calls.write({ method: write, message }, undefined)
  await advance(400)
  assert.equal(await writing, 'yes')
})

test('calls: a write refused to the end says that it never happened', async () => {
  const { calls, members, advance } = setUp(1)
  members[0]?.replies.push(...Array.from({ length: 50 }, () => noLeader))
  const writing = failed(calls.write({ method: write, message }, undefined))
  await advance(3_050)
  const error = await writing
  assert.equal(error.kind, 'unavailable')
  assert.equal(error.maybeApplied, false)
})

test('calls: without a connection a write is not sent, and goes out when there is one', async () => {
  const { calls, members, advance, wake } = setUp(1)
  const member = members[0]
  assert.ok(member)
  member.state = 'failing'
  const lost = failed(calls.write({ method: write, message }, { timeoutMs: 500 }))
  await advance(550)
  assert.deepEqual(
    [(await lost).kind, (await lost).maybeApplied, member.calls],
    ['unavailable', false, 0],
  )
  const writing = calls.write({ method: write, message }, undefined)
  await advance(100)
  member.state = 'ready'
  member.replies.push({ answer: 'yes' })
  wake()
  assert.equal(await writing, 'yes')
})

test("calls: the caller's signal ends a read at once, and the wait for a write", async () => {
  const { calls, members } = setUp(1)
  const ending = new AbortController()
  const reading = failed(calls.read({ method: read, message }, { signal: ending.signal }))
  const writing = failed(calls.write({ method: write, message }, { signal: ending.signal }))
  await settle()
  ending.abort(new Error('went away'))
  assert.deepEqual([(await reading).kind, (await reading).maybeApplied], ['cancelled', false])
  assert.deepEqual([(await writing).kind, (await writing).maybeApplied], ['cancelled', true])
  assert.equal(members[0]?.cancelled, 2)
  const late = await failed(calls.write({ method: write, message }, { signal: ending.signal }))
  assert.deepEqual([late.kind, late.maybeApplied], ['cancelled', false])
})

test('calls: a harmless end ends reads and writes that were not sent, and waits for the others', async () => {
  const { calls, members, advance } = setUp(1)
  const member = members[0]
  assert.ok(member)
  const ending = new AbortController()
  const options = { harmlessEnd: ending.signal }
  const reading = failed(calls.read({ method: read, message }, options))
  const sent = failed(calls.write({ method: write, message }, options))
  await settle()
  member.state = 'failing'
  const unsent = failed(calls.write({ method: write, message }, options))
  await settle()
  ending.abort()
  assert.deepEqual([(await reading).kind, (await reading).maybeApplied], ['unavailable', false])
  assert.deepEqual([(await unsent).kind, (await unsent).maybeApplied], ['unavailable', false])
  member.state = 'ready'
  const late = await failed(calls.write({ method: write, message }, options))
  assert.deepEqual([late.kind, late.maybeApplied, member.calls], ['unavailable', false, 2])
  await advance(3_050)
  assert.deepEqual([(await sent).kind, (await sent).maybeApplied], ['timeout', true])
})

test('calls: a write that is refused after a harmless end is not sent again', async () => {
  const { calls, members, advance } = setUp(1)
  const ending = new AbortController()
  members[0]?.replies.push(noLeader)
  const writing = failed(calls.write({ method: write, message }, { harmlessEnd: ending.signal }))
  ending.abort()
  await advance(500)
  assert.deepEqual([(await writing).maybeApplied, members[0]?.calls], [false, 1])
})

test('calls: the observer hears of what was sent, and of what nobody could be sent in time', async () => {
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
  member.replies.push({ answer: 'yes' }, { code: 3, details: 'etcdserver: key is not provided' })
  const failure = (path: string, ms = 0) => [{ path, ms, hasFailed: true }]
  for (const [make, meanwhile, expected] of [
    [() => reading(), nothing, [{ path: '/r', ms: 0, hasFailed: false }]],
    [() => writing(), nothing, failure('/w')],
    [() => reading({ harmlessEnd: over }), nothing, []],
    [() => writing({ harmlessEnd: over }), nothing, []],
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

test('calls: closing ends everything, and nothing starts after it', async () => {
  const { calls, closing, members } = setUp(1)
  const writing = failed(calls.write({ method: write, message }, undefined))
  await settle()
  closing.abort(new EtcdError({ kind: 'cancelled', message: 'closed' }))
  assert.equal((await writing).kind, 'cancelled')
  assert.equal((await failed(calls.read({ method: read, message }, undefined))).kind, 'cancelled')
  assert.equal(members[0]?.calls, 1)
})

test('calls: overdue counts from the deadline of the oldest call, and is 0 when all is well', async () => {
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

test('calls: a write that rests on what was read goes over connections of that time only', async () => {
  const { calls, members } = setUp(2)
  const [first, second] = members
  assert.ok(first !== undefined && second !== undefined)
  first.number = 7
  second.number = 3
  second.replies.push({ answer: 'second' })
  const options = { connectionMax: 5 }
  assert.equal(await calls.write({ method: write, message }, options), 'second')
  second.number = 8
  const error = await failed(calls.write({ method: write, message }, options))
  assert.deepEqual([error.kind, error.maybeApplied], ['outdated', false])
  assert.deepEqual([first.calls, second.calls], [0, 1])
})

test('calls: such a write is given up when its connection is lost, before gRPC takes another', async () => {
  const { calls, members } = setUp(1)
  const losing = new AbortController()
  Object.assign(members[0] ?? {}, { lost: losing.signal })
  const writing = failed(calls.write({ method: write, message }, { connectionMax: 1 }))
  await settle()
  losing.abort()
  const error = await writing
  assert.deepEqual([error.kind, error.maybeApplied], ['unavailable', true])
  assert.equal(members[0]?.cancelled, 1)
})

test('calls: an answer has the number of its own connection, whatever replaced that meanwhile', async () => {
  mock.timers.reset()
  const old = new FakeMember()
  old.number = 7
  let done: Callback = () => {}
  const client = {
    makeUnaryRequest: (...args: unknown[]) => {
      done = args.at(-1) as Callback
      return { cancel: () => {} }
    },
  } as unknown as Client
  const opened = Object.assign(old, { client })
  const link = new RenewableLink(
    () => opened,
    () => {},
  )
  const clock = { now: () => 0 }
  const endpoints = new EndpointSet(() => [
    new Endpoint({ name: 'm', calls: link, streams: link, clock }),
  ])
  const closing = new AbortController().signal
  const calls = new Calls({ endpoints, closing, clock, defaultTimeoutMs: 3_000 })
  const answer = calls.read({ method: read, message }, undefined)
  old.state = 'failing'
  const successor = new FakeMember()
  successor.state = 'connecting'
  successor.number = 0
  link.renew(() => successor)
  assert.equal(link.number, 0)
  done(null, 'late')
  assert.equal((await answer).connection, 7)
  link.close()
})
