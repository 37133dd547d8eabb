import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineSplitter } from './line-splitter.ts'

const LINE_BYTES_MAX = 40

/** What `LineSplitter` promises, said in one expression. */
function expected(text: string): readonly string[] {
  const size = (line: string): number => Buffer.byteLength(line)
  const complete = text.split('\n').slice(0, -1)
  return complete.filter((line) => line !== '' && size(line) <= LINE_BYTES_MAX)
}

test('returns the same lines however they are divided into pieces', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 30 }).map((one) => one.replaceAll('\n', ''))
  const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 30 })
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), cuts, fc.boolean(), (lines, at, isEnded) => {
      const text = lines.join('\n') + (isEnded ? '\n' : '')
      const bytes = Buffer.from(text)
      const splitter = new LineSplitter(LINE_BYTES_MAX)
      const found: string[] = []
      const edges = [0, ...at.filter((one) => one < bytes.length).toSorted((a, b) => a - b)]
      for (const [index, from] of edges.entries()) {
        const piece = bytes.subarray(from, edges[index + 1] ?? bytes.length)
        for (const { text: one, bytes: size } of splitter.split(piece)) {
          found.push(one)
          assert.equal(size, Buffer.byteLength(one))
        }
      }
      assert.deepEqual(found, expected(text))
      const tooLong = text.split('\n').slice(0, -1).length
      const empty = text
        .split('\n')
        .slice(0, -1)
        .filter((one) => one === '').length
      assert.equal(splitter.skippedCount, tooLong - empty - found.length)
    }),
    { numRuns: 500 },
  )
})

test('skips a line that does not end', () => {
  const splitter = new LineSplitter(LINE_BYTES_MAX)
  const piece = Buffer.alloc(1_000, 'x')
  for (let n = 0; n < 1_000; n++) assert.deepEqual([...splitter.split(piece)], [])
  const lines = [...splitter.split(Buffer.from('x\nnext\n'))]
  assert.deepEqual(lines, [{ text: 'next', bytes: 4 }])
  assert.equal(splitter.skippedCount, 1)
})
