import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MirrorConfig } from '../clusters/cluster-sections.ts'
import { SharedStreamBytes } from './stream-bytes.ts'

const MIB = 1024 * 1024

function mirroring(...namespaces: readonly (readonly string[] | undefined)[]) {
  const mirrors = [undefined, ...namespaces.map((each) => ({ namespaces: each }) as MirrorConfig)]
  return new Map(mirrors.map((mirror, index) => [`c${index}`, { mirror }]))
}

test('shares the total evenly among streams, also after a reload of the clusters', () => {
  const source = { clusters: mirroring(undefined) }
  const bytes = new SharedStreamBytes(20 * MIB, source)
  assert.deepEqual([bytes.page, bytes.window], [16 * MIB, 4 * MIB])
  source.clusters = mirroring(undefined, ['a', 'b', 'c'])
  assert.deepEqual([bytes.page, bytes.window], [4 * MIB, MIB])
  source.clusters = mirroring(undefined)
  assert.equal(bytes.page, 16 * MIB)
  const mirror = { namespaces: undefined, owners: true } as MirrorConfig
  source.clusters = new Map([['c', { mirror }]])
  assert.equal(bytes.page, 8 * MIB, 'half is for the pages of owners')
})

test('gives a stream no more than it can use and no less than it needs', () => {
  const one = new SharedStreamBytes(1024 * MIB, { clusters: mirroring(undefined) })
  assert.deepEqual([one.page, one.window], [16 * MIB, 4 * MIB])
  const names = Array.from({ length: 100 }, (_, index) => `n${index}`)
  const many = new SharedStreamBytes(16 * MIB, { clusters: mirroring(names, names) })
  assert.deepEqual([many.page, many.window], [MIB / 4, MIB / 16])
})
