import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CompactLabels, compactLabels, labelOf } from './compact-labels.ts'

function many(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`l${n}`, `v${n}`]))
}

test('compactLabels returns the same values as the object for many labels', () => {
  const labels = { ...many(9000), empty: '' }
  const compact = compactLabels(labels)
  assert.ok(compact instanceof CompactLabels)
  for (const [name, value] of Object.entries(labels)) assert.equal(labelOf(compact, name), value)
  for (const name of ['', 'a', 'l', 'l9000', 'l00', 'zz', 'v1', '__proto__', 'toString']) {
    assert.equal(labelOf(compact, name), undefined, name)
  }
})

test('compactLabels returns the object itself for few labels and for invalid ones', () => {
  assert.ok(!(compactLabels(many(10)) instanceof CompactLabels))
  for (const odd of ['a\nb', 'a\0b']) {
    const labels = { ...many(100), odd }
    assert.ok(!(compactLabels(labels) instanceof CompactLabels))
    assert.equal(labelOf(compactLabels(labels), 'odd'), odd)
  }
  assert.equal(labelOf({}, 'toString'), undefined)
})
