import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Needle, placeOfNote, UNSEARCHABLE } from './plain-notes.ts'

function bodyOf(note: string, labels: Readonly<Record<string, string>> = {}): Buffer {
  return Buffer.from(JSON.stringify({ metadata: { name: 'e', labels }, note, type: 'Normal' }))
}

function find(note: string, text: string, labels?: Readonly<Record<string, string>>) {
  const body = bodyOf(note, labels)
  const { offset, length } = placeOfNote(body, note)
  if (length === UNSEARCHABLE) return undefined
  return new Needle(text).in(body, offset, offset + length)
}

test('a search in bytes finds what a search in lower case finds, or leaves it open', () => {
  const letters = fc.constantFrom(...'abAB kK"\\\n\u0001/<éÉİ\u212a€ßſ😀'.split(''))
  const text = fc.array(letters, { maxLength: 12 }).map((list) => list.join(''))
  const needle = fc.array(letters, { maxLength: 3 }).map((list) => list.join('').toLowerCase())
  let told = 0
  fc.assert(
    fc.property(text, needle, (note, wanted) => {
      const found = find(note, wanted)
      if (found === undefined) return
      told++
      assert.equal(found, note.toLowerCase().includes(wanted))
    }),
    { numRuns: 5_000 },
  )
  assert.ok(told > 1_000, `${told}`)
})

test('notes with quotes and with letters beyond ASCII are searched without being decoded', () => {
  assert.equal(find('Pulling image "Nginx"', 'nginx'), true)
  assert.equal(find('Pulling image "Nginx"', '"nginx'), true)
  assert.equal(find('a\nbc', 'nbc'), undefined, 'the letter of an escape')
  assert.equal(find('a\u001fbc', '1fb'), undefined, 'the digits of an escape')
  assert.equal(find('C:\\new', 'new'), true, 'a backslash, and a letter')
  assert.equal(find('C:\\new', '\\n'), true)
  assert.equal(find('Pulling image "nginx"', 'redis'), false)
  assert.equal(find('Pulling image nginx', 'IMAGE'.toLowerCase()), true)
  assert.equal(find('größer als erlaubt', 'erlaubt'), true)
  assert.equal(find('größer als erlaubt', 'verboten'), false)
  assert.equal(find('greater', 'größer'), false)
  assert.equal(find('größer', 'größer'), undefined)
  assert.equal(find('at 300 \u212a', 'k'), undefined)
})

test('a repetitive text in a repetitive note is not compared length by length', () => {
  const note = 'a'.repeat(126_000)
  const startedAt = process.cpuUsage()
  assert.equal(find(note, `b${'a'.repeat(255)}`), undefined)
  assert.equal(find(note, `${'a'.repeat(128)}b`), false)
  const { user } = process.cpuUsage(startedAt)
  // Length by length it takes 32 million comparisons.
  assert.ok(user < 100_000, `${user} µs`)
})

test('labels and annotations that are called note do not confuse', () => {
  assert.equal(find('the note', 'note', { note: 'a label' }), true)
  assert.equal(find('the note', 'label', { note: 'a label' }), false)
  assert.equal(find('the note', 'label', { 'a"note': 'x', note: '"note":"the note"' }), false)
})

test('no other letter beyond ASCII has small letters in ASCII', () => {
  const found: string[] = []
  for (let code = 0x80; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code < 0xe000) continue
    const letter = String.fromCodePoint(code)
    const small = [...letter.toLowerCase()].map((one) => one.codePointAt(0) ?? 0)
    if (Math.min(...small) < 0x80) found.push(letter)
  }
  assert.deepEqual(found, ['\u0130', '\u212a'])
})
