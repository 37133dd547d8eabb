import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RegardedKinds } from './regarded-kinds.ts'

describe('RegardedKinds', () => {
  test('each kind is listed once, with its group and version', () => {
    const kinds = new RegardedKinds()
    for (const apiVersion of ['v1', 'apps/v1', 'apps/v1', 'v1', 'example.com/v1beta2']) {
      kinds.note('local', { kind: 'Thing', apiVersion })
    }
    assert.deepEqual(kinds.list('local'), [
      { group: 'apps', version: 'v1', kind: 'Thing' },
      { group: 'example.com', version: 'v1beta2', kind: 'Thing' },
      { group: '', version: 'v1', kind: 'Thing' },
    ])
    assert.equal(kinds.list('local'), kinds.list('local'))
  })

  test('invalid names of kinds and versions are ignored', () => {
    const kinds = new RegardedKinds()
    const noted: readonly (readonly [string, string])[] = [
      ['', 'v1'],
      ['pod', 'v1'],
      ['Pod/x', 'v1'],
      ['P'.repeat(64), 'v1'],
      ['Pod', ''],
      ['Pod', 'a/b/v1'],
      ['Pod', '../v1'],
      ['Pod', 'Apps/v1'],
      ['Pod', `${'a'.repeat(250)}/v1`],
      ['Pod', 'apps/1'],
      ['__proto__', 'v1'],
    ]
    for (const [kind, apiVersion] of noted) kinds.note('local', { kind, apiVersion })
    assert.deepEqual(kinds.list('local'), [])
  })

  test('the kinds of a cluster are not listed for another one', () => {
    const kinds = new RegardedKinds()
    kinds.note('a', { kind: 'Secretive', apiVersion: 'v1' })
    kinds.note('b', { kind: 'Pod', apiVersion: 'v1' })
    assert.deepEqual(kinds.list('b'), [{ group: '', version: 'v1', kind: 'Pod' }])
    assert.deepEqual(kinds.list('c'), [])
  })

  test('the least recently used kind is evicted', () => {
    const kinds = new RegardedKinds()
    for (let index = 0; index < 2_000; index++)
      kinds.note('local', { kind: `K${index}`, apiVersion: 'v1' })
    kinds.note('local', { kind: 'K0', apiVersion: 'v1' })
    kinds.note('local', { kind: 'Late', apiVersion: 'v1' })
    const names = kinds.list('local').map(({ kind }) => kind)
    assert.equal(names.length, 2_000)
    assert.deepEqual(
      ['K0', 'K1', 'Late'].filter((name) => names.includes(name)),
      ['K0', 'Late'],
    )
  })
})
