import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AnswerForm } from './answer-form.ts'
import { KeptEntries } from './kept-entries.ts'

const form = { contentType: 'a' } as AnswerForm
const other = { contentType: 'b' } as AnswerForm
const measured = { contentType: 'c', isMeasured: true } as AnswerForm
const entries = Buffer.from('0123456789')

/** Twice, which is when it is kept. */
function addTwice(kept: KeptEntries, run: { readonly isPast: boolean }): void {
  kept.add(form, run, entries)
  kept.add(form, run, entries)
}

describe('kept entries', () => {
  test('a run is kept when it is seen for the second time, as it was then', () => {
    const kept = new KeptEntries()
    const run = { isPast: false }
    const lent = Buffer.from(entries)
    kept.add(form, run, lent)
    assert.equal(kept.find(form, run), undefined)
    assert.equal(kept.bytes, 0)
    kept.add(form, run, lent)
    lent.fill('x')
    assert.deepEqual(kept.find(form, run), entries)
    assert.equal(kept.bytes, 10)
  })

  test('each form has its own', () => {
    const kept = new KeptEntries()
    const run = { isPast: false }
    addTwice(kept, run)
    kept.add(other, run, Buffer.from('abc'))
    assert.equal(kept.find(other, run), undefined, 'seen for the first time in this form')
    kept.add(other, run, Buffer.from('abc'))
    assert.equal(String(kept.find(other, run)), 'abc')
    assert.deepEqual(kept.find(form, run), entries)
    kept.add(form, run, entries)
    assert.equal(kept.bytes, 13, 'none twice')
  })

  test('what is full stays full of what is in use', () => {
    let nowMs = 0
    const kept = new KeptEntries({ bytesMax: 30, clock: { now: () => nowMs } })
    const runs = Array.from({ length: 4 }, () => ({ isPast: false }))
    for (const run of runs) addTwice(kept, run)
    nowMs = 50_000
    for (const run of runs) addTwice(kept, run)
    const found = () => runs.map((run) => kept.find(form, run) !== undefined)
    assert.deepEqual(found(), [true, true, true, false])
    assert.equal(kept.bytes, 30)
  })

  test('what is past gives way, and what nobody asks for any more', () => {
    let nowMs = 0
    const kept = new KeptEntries({ bytesMax: 30, clock: { now: () => nowMs } })
    const made = () => ({ isPast: false })
    const [first, second, third, fourth, fifth] = [made(), made(), made(), made(), made()]
    for (const run of [first, second, third]) addTwice(kept, run)
    second.isPast = true
    addTwice(kept, fourth)
    assert.equal(kept.find(form, second), undefined)
    assert.ok(kept.find(form, fourth))
    nowMs = 40_000
    kept.find(form, third)
    kept.find(form, fourth)
    nowMs = 61_000
    addTwice(kept, fifth)
    assert.equal(kept.find(form, first), undefined)
    assert.ok(kept.find(form, third))
    assert.ok(kept.find(form, fifth))
    assert.equal(kept.bytes, 30)
  })

  test('a measured form is kept at once, but gives way soon if only its own list has found it', () => {
    let nowMs = 0
    const kept = new KeptEntries({ bytesMax: 30, clock: { now: () => nowMs } })
    const made = () => ({ isPast: false })
    const [first, second, third, fourth, fifth] = [made(), made(), made(), made(), made()]
    for (const run of [first, second, third]) {
      kept.add(measured, run, entries)
      assert.deepEqual(kept.find(measured, run), entries, 'for the list that has measured it')
    }
    kept.find(measured, second)
    addTwice(kept, fourth)
    assert.equal(kept.find(form, fourth), undefined)
    nowMs = 6_000
    addTwice(kept, fourth)
    nowMs = 59_000
    addTwice(kept, fifth)
    const found = [first, second, third].map((run) => kept.find(measured, run) !== undefined)
    assert.deepEqual(found, [false, true, false])
    assert.ok(kept.find(form, fourth), 'it had been seen before, and so another list wanted it')
    assert.ok(kept.find(form, fifth))
  })

  test('what is found is counted', () => {
    const kept = new KeptEntries()
    const run = { isPast: false }
    addTwice(kept, run)
    kept.find(other, run)
    assert.equal(kept.finds, 0)
    kept.find(form, run)
    kept.find(form, run)
    assert.equal(kept.finds, 2)
  })

  test('what is past already is not kept', () => {
    const kept = new KeptEntries()
    addTwice(kept, { isPast: true })
    assert.equal(kept.bytes, 0)
  })

  test('what nobody asks for goes by itself, with one timer while there is anything', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    let nowMs = 0
    const kept = new KeptEntries({ clock: { now: () => nowMs } })
    const pass = (ms: number): void => {
      nowMs += ms
      t.mock.timers.tick(ms)
    }
    const [used, unused] = [{ isPast: false }, { isPast: false }]
    addTwice(kept, used)
    addTwice(kept, unused)
    pass(60_000)
    kept.find(form, used)
    pass(60_000)
    assert.equal(kept.bytes, 10)
    assert.deepEqual(kept.find(form, used), entries)
    pass(120_000)
    assert.equal(kept.bytes, 0)
    kept.add(form, used, entries)
    assert.equal(kept.bytes, 10, 'it was seen before')
    pass(120_000)
    assert.equal(kept.bytes, 0)
  })
})
