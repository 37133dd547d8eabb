import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Tokens } from './credentials.ts'

test("uses a cluster's own token, or otherwise the server's", () => {
  const tokens = new Tokens()
  assert.equal(tokens.for('prod'), undefined)
  tokens.add({ cluster: 'prod', token: 'of-prod' }, false)
  assert.deepEqual(tokens.for('prod'), { cluster: 'prod', token: 'of-prod' })
  assert.equal(tokens.for('staging'), undefined)
  assert.equal(tokens.for(''), undefined)
  tokens.add({ cluster: undefined, token: 'own' }, false)
  assert.deepEqual(tokens.for('staging'), { cluster: undefined, token: 'own' })
  assert.deepEqual(tokens.for('prod'), { cluster: 'prod', token: 'of-prod' })
  tokens.use(tokens.for('prod'), 'prod')
  tokens.end('prod')
  assert.deepEqual(tokens.for('prod'), { cluster: undefined, token: 'own' })
  tokens.forgetAll()
  assert.equal(tokens.for(''), undefined)
})

test("limits a session to its token's cluster, unless the server accepts the token", () => {
  const tokens = new Tokens()
  tokens.add({ cluster: 'prod', token: 'of-prod' }, false)
  tokens.use(tokens.for('prod'), 'prod')
  assert.deepEqual(
    ['prod', 'staging', ''].map((cluster) => tokens.isElsewhere(cluster)),
    [false, true, true],
  )
  // A rejection removes only the rejected token.
  tokens.add({ cluster: undefined, token: 'own' }, false)
  tokens.end('prod')
  assert.deepEqual(tokens.for('prod'), { cluster: undefined, token: 'own' })
  tokens.use(tokens.for('prod'), 'prod')
  assert.equal(tokens.isElsewhere('staging'), false)
})

test('moves a stored token to the only cluster that accepts it, and sends it to no other', (context) => {
  const kept = new Map([['tidings.token', 'of-prod']])
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
    removeItem: (key: string) => kept.delete(key),
  }
  const before = Object.getOwnPropertyDescriptor(globalThis, 'sessionStorage')
  Object.defineProperty(globalThis, 'sessionStorage', { value: storage, configurable: true })
  context.after(() => {
    if (before === undefined) Reflect.deleteProperty(globalThis, 'sessionStorage')
    else Object.defineProperty(globalThis, 'sessionStorage', before)
  })
  const tokens = new Tokens()
  const taken = tokens.for('prod')
  assert.deepEqual(taken, { cluster: undefined, token: 'of-prod' })
  tokens.settle(taken, taken)
  assert.deepEqual([...kept], [['tidings.token', 'of-prod']])
  const used = { cluster: 'prod', token: 'of-prod' }
  tokens.settle(taken, used)
  assert.deepEqual([...kept], [['tidings.token/prod', 'of-prod']])
  assert.equal(tokens.for('staging'), undefined)
  assert.deepEqual(tokens.for('prod'), used)
})
