import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { viewOf } from './order-key.ts'
import { bytesOfText, Slabs } from './slabs.ts'

/** Slabs, and the place of each slot, as their owner keeps it. */
function slabsWithPlaces() {
  const places = new Map<number, number>()
  const slabs = new Slabs({
    placeOf: (slot) => places.get(slot) ?? -1,
    moved: (slot, place) => places.set(slot, place),
  })
  return { slabs, places }
}

test('texts compare as their bytes do', () => {
  const bytes = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array))
  const texts = fc.string({ unit: 'grapheme', maxLength: 4 }).map((text) => Buffer.from(text))
  const text = fc.oneof(bytes, texts)
  const slabs = new Slabs({ placeOf: () => -1, moved: () => {} })
  fc.assert(
    fc.property(text, text, (one, other) => {
      const place = slabs.put(1, one)
      const wanted = Math.sign(Buffer.compare(one, other))
      assert.equal(Math.sign(slabs.compareWith(place, viewOf(other))), wanted)
      const otherPlace = slabs.put(2, other)
      assert.equal(Math.sign(slabs.compare(place, otherPlace)), wanted)
      assert.equal(Math.sign(slabs.compare(otherPlace, place)), -wanted || 0)
    }),
  )
})

test('a search finds the place of a text, whatever its neighbours have in common', () => {
  // Few letters, so that long beginnings are equal, and texts are beginnings of others.
  const letters = fc.uint8Array({ max: 2, maxLength: 24 }).map((array) => Buffer.from(array))
  const texts = fc.array(letters, { minLength: 1, maxLength: 300, size: 'max' })
  fc.assert(
    fc.property(texts, letters, fc.boolean(), (all, sought, isUpTo) => {
      const slabs = new Slabs({ placeOf: () => -1, moved: () => {} })
      const sorted = all.toSorted(Buffer.compare)
      const places = sorted.map((text) => slabs.put(1, text))
      const search = slabs.search()
      search.seek(slabs.put(2, sought))
      let [low, high] = [0, places.length]
      while (low < high) {
        const middle = (low + high) >>> 1
        const found = search.compare(places[middle] ?? 0)
        assert.equal(Math.sign(found), Buffer.compare(sorted[middle] ?? sought, sought))
        if (found < 0 || (isUpTo && found === 0)) low = middle + 1
        else high = middle
      }
    }),
    { numRuns: 500 },
  )
})

test('every body is at its recorded place, and dead bytes are bounded', () => {
  const sizes = fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 20_000, max: 600_000 }) },
  )
  const steps = fc.array(fc.record({ slot: fc.nat(150), size: sizes }), {
    minLength: 300,
    maxLength: 800,
    size: 'max',
  })
  fc.assert(
    fc.property(steps, (made) => {
      const { slabs, places } = slabsWithPlaces()
      const bodies = new Map<number, Buffer>()
      for (const [index, { slot, size }] of made.entries()) {
        const old = bodies.get(slot)
        if (old === undefined) {
          const body = Buffer.alloc(size, index % 251)
          bodies.set(slot, body)
          places.set(slot, slabs.put(slot, body))
        } else {
          const place = places.get(slot) ?? -1
          places.delete(slot)
          bodies.delete(slot)
          slabs.free(place, old.length)
        }
      }
      let alive = 0
      for (const [slot, body] of bodies) {
        const kept = slabs.view(places.get(slot) ?? -1, body.length)
        assert.ok(kept.equals(body), `slot ${slot}`)
        alive += body.length + 8
      }
      // A twelfth is dead, or two slabs; each may lack room for one more text; one is being filled.
      const most = (alive * 12) / 11 / 0.875 + (2 / 0.875 + 1) * 256 * 1024
      assert.ok(slabs.bytesHeld <= most, `${slabs.bytesHeld}, and at most ${most}`)
    }),
    { numRuns: 15 },
  )
})

test('long bodies leave little of a slab unused, whatever their size', () => {
  const slabs = new Slabs({ placeOf: () => -1, moved: () => {} })
  for (const size of [20_000, 30_000, 50_000, 90_000, 130_016]) {
    const before = slabs.bytesHeld
    for (let slot = 0; slot < 100; slot++) slabs.put(slot, Buffer.alloc(size))
    const most = (100 * (size + 8)) / 0.875 + 256 * 1024
    assert.ok(slabs.bytesHeld - before <= most, `${size}: ${slabs.bytesHeld - before}`)
  }
})

test('when long bodies are freed, dead short ones are reclaimed as well', () => {
  const { slabs, places } = slabsWithPlaces()
  const put = (slot: number, size: number): void => {
    places.set(slot, slabs.put(slot, Buffer.alloc(size)))
  }
  const free = (slot: number, size: number): void => {
    const place = places.get(slot) ?? -1
    places.delete(slot)
    slabs.free(place, size)
  }
  const [long, short] = [33_000, 600]
  for (let slot = 0; slot < 2_000; slot++) put(slot, long)
  for (let slot = 2_000; slot < 12_000; slot++) put(slot, short)
  // Nine of ten short ones are dead: less than a twelfth of everything.
  for (let slot = 2_000; slot < 12_000; slot++) if (slot % 10 > 0) free(slot, short)
  for (let slot = 0; slot < 2_000; slot++) free(slot, long)
  // Three slabs of live ones, two of dead ones, and the current one.
  assert.ok(slabs.bytesHeld <= 6 * 256 * 1024, `${slabs.bytesHeld}`)
})

test('a view stays valid after its body is freed', () => {
  const { slabs, places } = slabsWithPlaces()
  const place = slabs.put(1, Buffer.alloc(1_000, 7))
  const view = slabs.view(place, 1_000)
  const ref = slabs.refTo(place)
  slabs.free(place, 1_000)
  for (let slot = 2; slot < 2_000; slot++) places.set(slot, slabs.put(slot, Buffer.alloc(1_000, 9)))
  assert.ok(view.every((byte) => byte === 7))
  assert.deepEqual(bytesOfText(ref), view)
})

test('bodies that are freed before their slab is full are reclaimed as well', () => {
  const { slabs } = slabsWithPlaces()
  const body = Buffer.alloc(900)
  for (let round = 0; round < 10_000; round++) {
    const place = slabs.put(1, body)
    slabs.free(place, body.length)
  }
  assert.ok(slabs.bytesHeld <= 2 * 256 * 1024, `${slabs.bytesHeld} bytes held`)
})

test('texts that die in order are hardly copied, although some of them stay', () => {
  const places: number[] = []
  let moved = 0
  const slabs = new Slabs({
    placeOf: (slot) => places[slot] ?? -1,
    moved: (slot, place) => {
      moved++
      places[slot] = place
    },
  })
  const body = Buffer.alloc(900)
  const alive = 20_000
  for (let slot = 0; slot < 100_000; slot++) {
    places[slot] = slabs.put(slot, body)
    const due = slot - alive
    const place = places[due]
    if (place === undefined || due % 20 === 0) continue
    places[due] = -1
    slabs.free(place, body.length)
  }
  assert.ok(slabs.bytesHeld < 24_000 * 908 * 1.15, `${slabs.bytesHeld} bytes held`)
  assert.ok(moved < 10_000, `${moved} were moved`)
})
