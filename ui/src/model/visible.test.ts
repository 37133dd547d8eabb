import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isolated, visible } from './visible.ts'

const SHOWN: readonly (readonly [what: string, text: string, shown: string])[] = [
  ['plain text', 'Back-off restarting', 'Back-off restarting'],
  ['markup', '<script>alert(1)</script>&amp;', '<script>alert(1)</script>&amp;'],
  ['white space', 'two\tcolumns\nand lines', 'two\tcolumns\nand lines'],
  ['lines of Windows', 'one\r\ntwo', 'one\ntwo'],
  ['a carriage return alone, which hides a line in terminals', 'ok\rbad', 'ok\u240dbad'],
  ['escapes of terminals', '\u001b[31mred\u001b[0m', '\u241b[31mred\u241b[0m'],
  ['zero and delete', 'a\0b\u007f', 'a\u2400b\u2421'],
  ['controls without a picture', 'a\u0085b\u009bc', 'a[U+0085]b[U+009B]c'],
  ['an override of the direction', 'a\u202etxt.exe', 'a[U+202E]txt.exe'],
  ['isolates and marks', '\u2066a\u2069\u200f\u061c', '[U+2066]a[U+2069][U+200F][U+061C]'],
  [
    'characters without width',
    'ad\u200bmin\u2060\ufeff\u00ad',
    'ad[U+200B]min[U+2060][U+FEFF][U+00AD]',
  ],
  ['letters that are blank', '\u3164\u115f\uffa0', '[U+3164][U+115F][U+FFA0]'],
  ['lines of Unicode', 'a\u2028b\u2029', 'a[U+2028]b[U+2029]'],
  ['tags', 'a\u{e0041}', 'a[U+E0041]'],
  ['joiners between ASCII', 'ad\u200dmin', 'ad[U+200D]min'],
  ['a joiner at an end', '\u05d0\u200c', '\u05d0[U+200C]'],
  [
    'joined emoji',
    '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
    '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
  ],
  ['emoji with a selector', '\u2764\ufe0f', '\u2764\ufe0f'],
  ['letters from right to left', '\u05e9\u05dc\u05d5\u05dd', '\u05e9\u05dc\u05d5\u05dd'],
  ['combining marks', 'e\u0301\u0302', 'e\u0301\u0302'],
  ['a pile of marks', `z${'\u0301'.repeat(10)}`, `z${'\u0301'.repeat(8)}[U+0301][U+0301]`],
  ['half a pair', 'a\ud800b', 'a[U+D800]b'],
  ['names of members', '__proto__', '__proto__'],
]

describe('visible', () => {
  for (const [what, text, shown] of SHOWN) {
    test(what, () => assert.equal(visible(text), shown))
  }

  test('leaves visible text unchanged', () => {
    for (const [, , shown] of SHOWN) assert.equal(visible(shown), shown)
  })

  test('takes linear time', () => {
    const text = '\u200d\u202e'.repeat(50_000)
    const began = performance.now()
    assert.equal(visible(text).length, text.length * 8)
    assert.ok(performance.now() - began < 1_000)
  })
})

test('does not let the text end its isolation', () => {
  assert.equal(isolated('a\u2069\u202eb'), '\u2068a[U+2069][U+202E]b\u2069')
})
