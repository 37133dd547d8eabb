import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLog } from '../../lib/log/log.ts'
import { IssuerKeys } from './issuer-keys.ts'

const ISSUER = 'https://issuer.example/tenant'
const COOLDOWN_MS = 5_000
const MINUTE_MS = 60_000

/** An issuer in memory, with a manual clock. */
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
  test('concurrent callers share one request', async () => {
    const { state, keys } = issuer()
    await Promise.all(Array.from({ length: 100 }, () => keys.current()))
    assert.deepEqual(state.reads, [
      'https://issuer.example/tenant/.well-known/openid-configuration',
      'https://issuer.example/keys',
    ])
    assert.equal(state.changes, 1)
  })

  test('an issuer that is down gets one request per cooldown, and all tokens are refused', async () => {
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

  test('an unknown key causes a request, but not more than one per cooldown', async () => {
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

  test('unchanged keys are not newer ones', async () => {
    const { state, keys } = issuer()
    const first = await keys.current()
    state.nowMs += COOLDOWN_MS
    assert.equal(await keys.laterThan(first), undefined)
    assert.equal(state.reads.length, 4)
    assert.equal(state.changes, 1)
  })

  test('keys are refreshed in the background, and expire when that fails for an hour', async () => {
    const { state, keys } = issuer()
    const first = await keys.current()
    state.nowMs += 11 * MINUTE_MS
    assert.equal(await keys.current(), first)
    for (let tick = 0; tick < 5; tick++) await new Promise(setImmediate)
    assert.equal(state.reads.length, 4)
    state.isDown = true
    state.nowMs += 59 * MINUTE_MS
    assert.equal((await keys.current()).find, first.find)
    for (let tick = 0; tick < 5; tick++) await new Promise(setImmediate)
    state.nowMs += MINUTE_MS
    await assert.rejects(keys.current(), { name: 'TokenRefused' })
  })

  for (const [what, documents] of [
    ['another issuer', { discovery: { issuer: 'https://else', jwks_uri: 'https://else/keys' } }],
    ['a jwks_uri without https', { discovery: { issuer: ISSUER, jwks_uri: 'http://issuer/keys' } }],
    ['no jwks_uri', { discovery: { issuer: ISSUER } }],
    ['no object', { discovery: [] }],
    ['no list of keys', { keys: { keys: {} } }],
    ['too many keys', { keys: { keys: Array.from({ length: 101 }, () => ({ kty: 'EC' })) } }],
    ['invalid keys', { keys: { keys: ['a'] } }],
  ] as const) {
    test(`returns no keys for a document with ${what}`, async () => {
      const { keys } = issuer(documents)
      await assert.rejects(keys.current(), { name: 'TokenRefused' })
    })
  }
})
