import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Version } from '../storage/resource-version.ts'
import { ArchiveState } from './archive-state.ts'
import type { Gap, Pointer } from './manifest.ts'

function stateAt(position: number) {
  const place = { position, positionAtMs: 0, gaps: [] as Gap[], hasRoom: true, now: 0 }
  const state = new ArchiveState({
    catalogue: {
      get position() {
        return place.position as Version
      },
      get pointer() {
        return { ...place, position: place.position as Version } as unknown as Pointer
      },
    },
    name: 'file:///archive',
    hasRoom: () => place.hasRoom,
    wallTime: () => place.now,
  })
  return { place, state }
}

describe('the state of the archive', () => {
  test('counts what was deleted before the archiver read it, and only that', () => {
    const { place, state } = stateAt(100)
    state.onDeleted(90 as Version, 'evicted')
    state.onDeleted(150 as Version, 'evicted')
    state.onDeleted(250 as Version, 'no-space')
    assert.deepEqual([...state.lost], [])
    // The archiver read on, one change after the other.
    place.position = 200
    assert.deepEqual([...state.lost], [])
    // It missed the changes up to 300.
    place.position = 300
    place.gaps.push({ from: 200 as Version, to: 300 as Version })
    assert.deepEqual([...state.lost], [['no-space', 1]])
    assert.deepEqual([...state.lost], [['no-space', 1]])
  })

  test('needs the changes after its position, for a while and while there is room', () => {
    const { place, state } = stateAt(100)
    assert.equal(state.readAfter(), 100)
    place.hasRoom = false
    assert.equal(state.readAfter(), undefined)
    place.hasRoom = true
    place.now = 2 * 3_600_000
    assert.equal(state.readAfter(), undefined)
  })
})
