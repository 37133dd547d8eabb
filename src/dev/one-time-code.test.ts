import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { OneTimeCode } from './one-time-code.ts'

const MINUTE = 60_000

describe('the one-time code', () => {
  test('has 128 bits and differs each time', () => {
    const codes = [0, 1].map(() => new OneTimeCode('token', { now: () => 0 }).code)
    for (const code of codes) assert.match(code, /^[0-9a-f]{32}$/)
    assert.notEqual(codes[0], codes[1])
  })

  test('is exchanged once', () => {
    const signIn = new OneTimeCode('token', { now: () => 0 })
    assert.equal(signIn.redeem(signIn.code), 'token')
    assert.equal(signIn.redeem(signIn.code), undefined)
  })

  test('stays valid after a wrong code', () => {
    const signIn = new OneTimeCode('token', { now: () => 0 })
    for (const code of [
      '',
      `${signIn.code}x`,
      signIn.code.slice(1),
      `${signIn.code.slice(0, -1)}g`,
    ]) {
      assert.equal(signIn.redeem(code), undefined)
    }
    assert.equal(signIn.redeem(signIn.code), 'token')
  })

  test('expires after ten minutes', () => {
    let now = 5
    const signIn = new OneTimeCode('token', { now: () => now })
    const other = new OneTimeCode('token', { now: () => now })
    now += 10 * MINUTE - 1
    assert.equal(signIn.redeem(signIn.code), 'token')
    now += 1
    assert.equal(other.redeem(other.code), undefined)
  })
})
