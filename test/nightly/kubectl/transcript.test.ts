import assert from 'node:assert/strict'
import { test } from 'node:test'
import { normalOutput, parseTranscript } from './transcript.ts'

test('a transcript is commands with remarks, their output, and their exit codes', () => {
  assert.deepEqual(
    parseTranscript('# why\n$ kubectl a -b\none\n\ntwo\n[exit 0]\n\n$ kubectl c\n[exit 1]\n'),
    [
      { command: 'kubectl a -b', output: 'one\n\ntwo\n', exitCode: 0, remark: 'why' },
      { command: 'kubectl c', output: '', exitCode: 1, remark: '' },
    ],
  )
})

test('any other text is rejected as a transcript', () => {
  for (const text of ['one', '$ kubectl a\none', 'one\n$ kubectl a\n[exit 0]\n']) {
    assert.throws(() => parseTranscript(text), /neither/)
  }
})

test('normalOutput: ids, versions, times and ages are ignored', () => {
  const one = `LAST SEEN   TYPE     OBJECT
3m4s        Normal   pod/web-0
316d (x17 over 2y)   Normal   pod/web-0`
  const other = `LAST SEEN   TYPE     OBJECT
9d    Normal   pod/web-0
1h (x17 over 316d)   Normal   pod/web-0`
  assert.equal(normalOutput(one), normalOutput(other))
  const uid = '86e33b2e-88fb-43ed-a9c1-25daa9f6904f'
  assert.equal(
    normalOutput(`  uid: ${uid}\n  resourceVersion: "204"\n  time: "2026-11-14T23:05:40Z"\n`),
    '  uid: <uid>\n  resourceVersion: <version>\n  time: <time>',
  )
})

test('normalOutput: everything else is compared', () => {
  for (const [one, other] of [
    ['eventTime: "2026-01-02T03:04:05.000001Z"', 'eventTime: "2026-01-02T03:04:05.000002Z"'],
    ['3m4s   Normal   pod/web-0', '3m4s   Normal   pod/web-1'],
    ['316d (x17 over 2y)', '316d (x18 over 2y)'],
    ['Name:    web-0', 'Name:  web-0'],
    ['event "a" deleted', 'event "b" deleted'],
    [
      'DESCRIPTION:\n    words\nFIELDS:\n  a\t<string>',
      'DESCRIPTION:\n    words\nFIELDS:\n  a\t<integer>',
    ],
    ['DESCRIPTION:\nFIELDS:\n  a\t<b>\n    c\t<d>', 'DESCRIPTION:\nFIELDS:\n  a\t<b>\n    e\t<d>'],
  ] as const) {
    assert.notEqual(normalOutput(one), normalOutput(other))
  }
})

test('normalOutput: descriptions may differ between servers, but there must be one', () => {
  const fields = (words: string): string => `DESCRIPTION:\n${words}\nFIELDS:\n  a\t<string>`
  assert.equal(
    normalOutput(fields('    Some\n    words.\n')),
    normalOutput(fields("    (in the server's own words)\n")),
  )
  assert.notEqual(normalOutput(fields('    Some words.\n')), normalOutput(fields('')))
})
