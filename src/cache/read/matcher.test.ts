import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allEvents } from '../../storage/event-scope.ts'
import { versionOfChange } from '../../storage/resource-version.ts'
import { storedEvent } from '../memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../memory/memory.ts'
import { Matcher } from './matcher.ts'

/** Whether the clock must be read after one event with a large body was searched for a text. */
function hasReadMuch(note: string, text: string): boolean {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  const annotations = { large: 'x'.repeat(100_000) }
  const body = JSON.stringify({ metadata: { name: 'e', namespace: 'shop', annotations }, note })
  const key = { cluster: 'local', namespace: 'shop', name: 'e' }
  memory.put(storedEvent(key, versionOfChange(1, 0), Buffer.from(body)))
  const requires = { texts: [{ text, isIn: true }], isAll: true }
  const selector = { matches: () => true, requires }
  const matcher = new Matcher(memory, { scope: allEvents, selector }, true)
  matcher.isMatch(0)
  return matcher.hasReadMuch()
}

test('an event that is read to find a text counts with its whole body', () => {
  assert.equal(hasReadMuch('hello', 'zzz'), false, 'its bytes tell')
  assert.equal(hasReadMuch('é', 'ü'), true, 'letters beyond ASCII')
  assert.equal(hasReadMuch('say\nhi', 'nhi'), true, 'an escape')
})
