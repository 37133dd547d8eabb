import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { eventRow } from './event-row.ts'
import { codeSpan, MARKDOWN_ROWS_MAX, markdownReport } from './markdown.ts'
import { visible } from './visible.ts'

const hostile = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'`|\\<>[]()!*_~#@&; \n\r\t\u202e\u0000aw.:/-') }),
  fc.constantFrom('<script>', '[x](http://y)', '@team', 'a\\|b', '``` |', '&#124;', 'www.x.y'),
)

/** Takes the code spans out of a line, by the rule of CommonMark. */
function withoutCode(line: string): { readonly rest: string; readonly spans: readonly string[] } {
  const spans: string[] = []
  let rest = ''
  let at = 0
  while (at < line.length) {
    const fence = /^`+/.exec(line.slice(at))?.[0] ?? ''
    const end = fence === '' ? -1 : closing(line, at + fence.length, fence.length)
    if (end === -1) {
      rest += fence || line[at]
      at += fence.length || 1
    } else {
      const content = line.slice(at + fence.length, end)
      spans.push(/^ .* $/.test(content) && content.trim() !== '' ? content.slice(1, -1) : content)
      at = end + fence.length
    }
  }
  return { rest, spans }
}

function closing(line: string, from: number, length: number): number {
  for (const run of line.slice(from).matchAll(/`+/g)) {
    if (run[0].length === length) return from + run.index
  }
  return -1
}

test('encloses the text and nothing else in a code span', () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const { rest, spans } = withoutCode(codeSpan(text))
      assert.match(rest, /^(?: *(?:&#124;)*)*$/)
      const shown = visible(text)
        .replaceAll(/[\n\t]/g, ' ')
        .trim()
      assert.deepEqual(
        spans,
        shown.split('|').filter((part) => part.trim() !== ''),
      )
    }),
    { numRuns: 5_000 },
  )
})

test('gives every row eight cells, whatever the event contains', () => {
  fc.assert(
    fc.property(fc.array(hostile, { minLength: 7, maxLength: 7 }), (texts) => {
      const [
        type = '',
        reason = '',
        message = '',
        kind = '',
        name = '',
        component = '',
        subject = '',
      ] = texts
      const row = eventRow({
        metadata: { name: 'a', namespace: 'shop', annotations: { 'tidings.dev/cluster': name } },
        ...{ type, reason, message, involvedObject: { kind, name }, source: { component } },
      })
      const report = markdownReport({ subject, rows: [row, row], hasMore: false })
      const lines = report.split('\n')
      assert.equal(lines.length, 7)
      for (const line of lines.slice(2, 6)) assert.equal(line.split('|').length, 10)
      for (const line of lines.slice(4, 6)) {
        assert.match(
          withoutCode(line).rest,
          /^(?:\| 1970-01-01 00:00:00 ){2}(?:\| [ 1]*(?:&#124; *)*)+\|$/,
        )
      }
    }),
    { numRuns: 2_000 },
  )
})

test('shows UTC times, counts, and that the report is truncated', () => {
  const row = eventRow({
    metadata: { name: 'a', namespace: 'shop' },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0' },
    ...{ type: 'Warning', reason: 'BackOff', message: 'Back-off | restarting', count: 12 },
    ...{ firstTimestamp: '2026-11-16T03:00:00Z', lastTimestamp: '2026-11-16T03:10:00Z' },
    reportingComponent: 'kubelet',
  })
  const report = markdownReport({ subject: 'Pod/shop/web-0', rows: [row], hasMore: false })
  assert.equal(
    report,
    [
      'Events: `Pod/shop/web-0`',
      '',
      '| First seen (UTC) | Last seen (UTC) | Type | Reason | Object | Times | Note | From |',
      '| --- | --- | --- | --- | --- | --- | --- | --- |',
      '| 2026-11-16 03:00:00 | 2026-11-16 03:10:00 | `Warning` | `BackOff` | `Pod/shop/web-0` | 12 | `Back-off `&#124;` restarting` | `kubelet` |',
      '',
    ].join('\n'),
  )
  const many = Array.from({ length: MARKDOWN_ROWS_MAX + 1 }, () => row)
  assert.match(
    markdownReport({ subject: 'x', rows: many, hasMore: false }),
    /the newest 500 of them/,
  )
})
