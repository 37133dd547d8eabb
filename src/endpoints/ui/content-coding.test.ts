import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptedCodings } from './content-coding.ts'

test('acceptedCodings sorts by quality, and puts the smaller of equal ones first', () => {
  const cases: readonly [string | undefined, readonly string[]][] = [
    [undefined, []],
    ['', []],
    ['identity', []],
    ['gzip', ['gzip']],
    ['gzip, deflate, br, zstd', ['br', 'gzip']],
    ['GZIP ; Q=1.0', ['gzip']],
    ['br;q=0.5, gzip;q=0.8', ['gzip', 'br']],
    ['br;q=0, gzip', ['gzip']],
    ['*', ['br', 'gzip']],
    ['*;q=0.1, br;q=0', ['gzip']],
    ['gzip;q=0.1, identity', []],
    ['identity;q=0', []],
    ['br;q=high, gzip;q=', []],
    ['deflate', []],
    [`${'x,'.repeat(50)}br`, []],
  ]
  for (const [header, expected] of cases) {
    assert.deepEqual(acceptedCodings(header), expected, header)
  }
})
