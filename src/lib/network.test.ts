import assert from 'node:assert/strict'
import { test } from 'node:test'
import { networkOf } from './network.ts'

test('networkOf returns the /64 prefix of an IPv6 address and any other address unchanged', () => {
  const cases = [
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '::ffff:10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['2001:db8::9', '2001:db8:0:0'],
  ]
  for (const [address = '', network] of cases) assert.equal(networkOf(address), network)
})
