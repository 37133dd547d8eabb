import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readVersionText } from './get.ts'

test('readVersionText returns the version, and refuses export', () => {
  const read = (text: string): string => readVersionText(new URLSearchParams(text))
  assert.equal(read(''), '')
  assert.equal(read('resourceVersion=5&resourceVersionMatch=Exact'), '5')
  assert.equal(read('export=false'), '')
  for (const text of ['export', 'export=true', 'export=1']) {
    assert.throws(
      () => read(text),
      {
        code: 400,
        message: 'the export parameter, deprecated since v1.14, is no longer supported',
      },
      text,
    )
  }
})
