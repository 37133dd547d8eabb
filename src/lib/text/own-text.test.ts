import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ownText } from './own-text.ts'

test('ownText returns an equal string for every text', () => {
  const unit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code))
  fc.assert(
    fc.property(fc.array(unit), (units) => {
      const text = units.join('')
      assert.equal(ownText(text), text)
    }),
  )
})
