import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generatedName, RandomSuffixes } from './random-suffix.ts'

test('generatedName appends the suffix', () => {
  assert.equal(generatedName('gen-', '4xb4h'), 'gen-4xb4h')
})

test('generatedName truncates a long base to fit into 63 characters', () => {
  assert.equal(generatedName('x'.repeat(100), 'dft4h'), `${'x'.repeat(58)}dft4h`)
})

test('RandomSuffixes returns five characters without vowels', () => {
  const suffixes = new RandomSuffixes()
  for (let at = 0; at < 2000; at++)
    assert.match(suffixes.next(), /^[bcdfghjklmnpqrstvwxz2456789]{5}$/)
})

test('RandomSuffixes returns every character with equal probability', () => {
  // Every byte value once per 256: bytes that would favour some characters are discarded.
  const suffixes = new RandomSuffixes((pool) => {
    for (let at = 0; at < pool.length; at++) pool[at] = at % 256
  })
  const counts = new Map<string, number>()
  for (let at = 0; at < 27 * 9; at++) {
    for (const character of suffixes.next()) {
      counts.set(character, (counts.get(character) ?? 0) + 1)
    }
  }
  assert.equal(counts.size, 27)
  assert.deepEqual(new Set(counts.values()), new Set([45]))
})

test('RandomSuffixes fetches new random bytes when the pool is used up', () => {
  let filled = 0
  const suffixes = new RandomSuffixes((pool) => pool.fill(filled++))
  const seen = new Set<string>()
  for (let at = 0; at < 2000; at++) seen.add(suffixes.next())
  assert.equal(filled, Math.ceil((2000 * 5) / 4096))
  assert.ok(seen.has('bbbbb') && seen.has('ccccc') && seen.has('ddddd'))
})
