import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConnectionState } from './connection.ts'
import { Endpoint, EndpointSet, type Link } from './endpoints.ts'
import type { Client } from './transport/client.ts'

class FakeLink implements Link {
  readonly client = {} as Client
  readonly lastError = undefined
  isSilent = false
  noteResponse(): void {}
  number = 1
  readonly lost = new AbortController().signal
  state: ConnectionState = 'ready'
  close(): void {
    this.state = 'idle'
  }
}

function setUp(count: number) {
  const clock = { time: 0, now: () => clock.time }
  const links = Array.from({ length: count }, () => new FakeLink())
  let changed = () => {}
  const set = new EndpointSet((onChange) => {
    changed = onChange
    return links.map(
      (link, index) => new Endpoint({ name: `m${index}`, calls: link, streams: link, clock }),
    )
  })
  return { clock, links, set, changed: () => changed() }
}

function names(set: EndpointSet, avoid: readonly string[]): string | undefined {
  const avoided = new Set(set.all.filter((endpoint) => avoid.includes(endpoint.name)))
  return set.pick('calls', { avoid: avoided })?.name
}

test('endpoints: pick returns the first connected member in the configured order', () => {
  const { links, set } = setUp(3)
  assert.equal(set.pick('calls')?.name, 'm0')
  for (const state of ['connecting', 'failing', 'idle'] as const) {
    Object.assign(links[0] ?? {}, { state })
    assert.equal(set.pick('calls')?.name, 'm1')
  }
})

test('endpoints: the preferred member is picked first, then the next after it', () => {
  const { set } = setUp(3)
  const last = set.find('m2')
  assert.ok(last)
  set.prefer(last)
  assert.equal(set.pick('calls')?.name, 'm2')
  assert.equal(names(set, ['m2']), 'm0')
  assert.equal(names(set, ['m2', 'm0', 'm1']), undefined)
})

test('endpoints: a suspect member is the last choice for ten seconds or until it responds', () => {
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

test('endpoints: a member that did not respond to its probe is the last choice', () => {
  const { links, set } = setUp(2)
  Object.assign(links[0] ?? {}, { isSilent: true })
  assert.equal(set.pick('calls')?.name, 'm1')
  assert.equal(names(set, ['m1']), 'm0')
})

test('endpoints: pick returns no unconnected member, and changed resolves on a state change', async () => {
  const { links, set, changed } = setUp(1)
  Object.assign(links[0] ?? {}, { state: 'connecting' })
  assert.equal(set.pick('calls'), undefined)
  const waiting = set.changed(new AbortController().signal)
  Object.assign(links[0] ?? {}, { state: 'ready' })
  changed()
  await waiting
  assert.equal(set.pick('calls')?.name, 'm0')
})

test('endpoints: changed resolves when the signal aborts', async () => {
  const { set } = setUp(1)
  const ending = new AbortController()
  const waiting = set.changed(ending.signal)
  ending.abort()
  await waiting
  await set.changed(ending.signal)
})
