import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLog } from '../../lib/log.ts'
import { IssuerKeys } from './issuer-keys.ts'

const ISSUER = 'https://issuer.example/tenant'
const COOLDOWN_MS = 5_000
const MINUTE_MS = 60_000

/** An issuer in memory, with a clock that is moved by hand. */
function issuer(documents: { discovery?: unknown; keys?: unknown } = {}) {
  const state = {
    nowMs: 0,
    reads: [] as string[],
    isDown: false,
    changes: 0,
    discovery: { issuer: ISSUER, jwks_uri: 'https://issuer.example/keys' } as unknown,
    keys: { keys: [] as unknown[] } as unknown,
    ...documents,
  }
  const keys = new IssuerKeys({
    issuerUrl: ISSUER,
    read: async (url) => {
      state.reads.push(url.href)
      await new Promise(setImmediate)
      if (state.isDown) throw new Error('down')
      return Buffer.from(JSON.stringify(url.pathname === '/keys' ? state.keys : state.discovery))
    },
    onChange: () => {
      state.changes += 1
    },
    clock: { now: () => state.nowMs },
    log: silentLog,
  })
  return { state, keys }
}

describe('keys of an issuer', () => {
  test('all who wait share one question', async () => {
    const { state, keys } = issuer()
    await Promise.all(Array.from({ length: 100 }, () => keys.current()))
    assert.deepEqual(state.reads, [
      'https://issuer.example/tenant/.well-known/openid-configuration',
      'https://issuer.example/keys',
    ])
    assert.equal(state.changes, 1)
  })

  test('while it is down there is one question in each pause, and a refusal for all', async () => {
    const { state, keys } = issuer()
    state.isDown = true
    for (let round = 0; round < 3; round++) {
      for (let caller = 0; caller < 20; caller++) {
        await assert.rejects(keys.current(), { name: 'TokenRefused' })
      }
      assert.equal(state.reads.length, round + 1)
      state.nowMs += COOLDOWN_MS
    }
    state.isDown = false
    await keys.current()
  })

  test('a key that is not there is asked for, but not again and again', async () => {
    const { state, keys } = issuer()
    const first = await keys.current()
    assert.equal(await keys.laterThan(first), undefined)
    assert.equal(state.reads.length, 2)
    state.nowMs += COOLDOWN_MS
    state.keys = { keys: [{ kty: 'oct' }] }
    const later = await keys.laterThan(first)
    assert.notEqual(later, undefined)
    assert.equal(await keys.laterThan(first), later)
    assert.equal(state.reads.length, 4)
    assert.equal(state.changes, 2)
  })

  test('the same keys again are no later ones', async () => {
    const { state, keys } = issuer()
    const first = await keys.current()
    state.nowMs += COOLDOWN_MS
    assert.equal(await keys.laterThan(first), undefined)
    assert.equal(state.reads.length, 4)
    assert.equal(state.changes, 1)
  })

  test('keys are renewed in time, and not trusted for ever without', async () => {
    const { state, keys } = issuer()
    const first = await keys.current()
    state.nowMs += 11 * MINUTE_MS
    assert.equal(await keys.current(), first)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    assert.equal(state.reads.length, 4)
    state.isDown = true
    state.nowMs += 59 * MINUTE_MS
    assert.equal((await keys.current()).find, first.find)
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    state.nowMs += MINUTE_MS
    await assert.rejects(keys.current(), { name: 'TokenRefused' })
  })

  for (const [what, documents] of [
    ['another issuer', { discovery: { issuer: 'https://else', jwks_uri: 'https://else/keys' } }],
    [
      'keys elsewhere than https',
      { discovery: { issuer: ISSUER, jwks_uri: 'http://issuer/keys' } },
    ],
    ['no place of keys', { discovery: { issuer: ISSUER } }],
    ['no object', { discovery: [] }],
    ['no list of keys', { keys: { keys: {} } }],
    ['far too many keys', { keys: { keys: Array.from({ length: 101 }, () => ({ kty: 'EC' })) } }],
    ['keys that are none', { keys: { keys: ['a'] } }],
  ] as const) {
    test(`a document with ${what} gives no keys`, async () => {
      const { keys } = issuer(documents)
      await assert.rejects(keys.current(), { name: 'TokenRefused' })
    })
  }
})
