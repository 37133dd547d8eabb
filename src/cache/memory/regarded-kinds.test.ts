import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RegardedKinds } from './regarded-kinds.ts'

describe('RegardedKinds', () => {
  test('each kind is listed once, with its group and version', () => {
    const kinds = new RegardedKinds()
    for (const apiVersion of ['v1', 'apps/v1', 'apps/v1', 'v1', 'example.com/v1beta2']) {
      kinds.note({ kind: 'Thing', apiVersion })
    }
    assert.deepEqual(kinds.list(), [
      { group: 'apps', version: 'v1', kind: 'Thing' },
      { group: 'example.com', version: 'v1beta2', kind: 'Thing' },
      { group: '', version: 'v1', kind: 'Thing' },
    ])
    assert.equal(kinds.list(), kinds.list())
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
    for (const [kind, apiVersion] of noted) kinds.note({ kind, apiVersion })
    assert.deepEqual(kinds.list(), [])
  })

  test('the least recently used kind is evicted', () => {
    const kinds = new RegardedKinds()
    for (let index = 0; index < 500; index++) kinds.note({ kind: `K${index}`, apiVersion: 'v1' })
    kinds.note({ kind: 'K0', apiVersion: 'v1' })
    kinds.note({ kind: 'Late', apiVersion: 'v1' })
    const names = kinds.list().map(({ kind }) => kind)
    assert.equal(names.length, 500)
    assert.deepEqual(
      ['K0', 'K1', 'Late'].filter((name) => names.includes(name)),
      ['K0', 'Late'],
    )
  })
})
