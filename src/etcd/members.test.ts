import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Session } from '../grpc/session.ts'
import type { Connection } from './connection.ts'
import { Member, Members } from './members.ts'
import type { ConnectionState } from './protocol/protocol.ts'

type PublicConnection = Pick<Connection, keyof Connection>

class FakeConnection implements PublicConnection {
  state: ConnectionState = 'ready'
  pings = 0
  get current() {
    return this.state === 'ready' ? { session: {} as Session, number: 1 } : undefined
  }
  error = () => undefined
  ping(): void {
    this.pings += 1
  }
  renew(): void {}
  close(): void {
    this.state = 'closed'
  }
}

function setUp(count: number) {
  const clock = { time: 0, now: () => clock.time }
  const connections = Array.from({ length: count }, () => new FakeConnection())
  let changed = () => {}
  const set = new Members((onChange) => {
    changed = onChange
    return connections.map(
      (fake, index) => new Member({ name: `m${index}`, calls: fake, streams: fake, clock }),
    )
  })
  return { clock, connections, set, changed: () => changed() }
}

function names(set: Members, avoid: readonly string[]): string | undefined {
  const avoided = new Set(set.all.filter((member) => avoid.includes(member.name)))
  return set.pick('calls', { avoid: avoided })?.name
}

test('pick returns the first connected member in the configured order', () => {
  const { connections, set } = setUp(3)
  assert.equal(set.pick('calls')?.name, 'm0')
  for (const state of ['connecting', 'failing', 'closed'] as const) {
    Object.assign(connections[0] ?? {}, { state })
    assert.equal(set.pick('calls')?.name, 'm1')
  }
})

test('the preferred member is picked first, then the next after it', () => {
  const { set } = setUp(3)
  const last = set.find('m2')
  assert.ok(last)
  set.prefer(last)
  assert.equal(set.pick('calls')?.name, 'm2')
  assert.equal(names(set, ['m2']), 'm0')
  assert.equal(names(set, ['m2', 'm0', 'm1']), undefined)
})

test('a suspect member is the last choice for ten seconds or until it responds', () => {
  const { clock, set } = setUp(2)
  const first = set.find('m0')
  assert.ok(first)
  first.suspect()
  assert.equal(set.pick('calls')?.name, 'm1')
  assert.equal(names(set, ['m1']), 'm0')
  clock.time = 9_999
  assert.equal(set.pick('calls')?.name, 'm1')
  clock.time = 10_000
  assert.equal(set.pick('calls')?.name, 'm0')
  first.suspect()
  first.trust()
  assert.equal(set.pick('calls')?.name, 'm0')
})

test('a suspect member is pinged on both connections', () => {
  const { connections, set } = setUp(1)
  set.find('m0')?.suspect()
  assert.equal(connections[0]?.pings, 2)
})

test('pick returns only connected members, and changed resolves on a state change', async () => {
  const { connections, set, changed } = setUp(1)
  Object.assign(connections[0] ?? {}, { state: 'connecting' })
  assert.equal(set.pick('calls'), undefined)
  const waiting = set.changed(new AbortController().signal)
  Object.assign(connections[0] ?? {}, { state: 'ready' })
  changed()
  await waiting
  assert.equal(set.pick('calls')?.name, 'm0')
})

test('changed resolves when the signal aborts', async () => {
  const { set } = setUp(1)
  const ending = new AbortController()
  const waiting = set.changed(ending.signal)
  ending.abort()
  await waiting
  await set.changed(ending.signal)
})
