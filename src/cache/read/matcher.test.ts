import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
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
  const requires = { texts: [{ texts: [text], isIn: true, isAnywhere: false }], isAll: true }
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

const words = [
  'kubelet',
  'Istio',
  'İstio',
  '\u212aiosk',
  'web-0',
  'a"b',
  'ä',
  'line\nbreak',
  '',
  'x\\n',
]

const anyWord = fc.constantFrom(...words)

function memoryOf(body: object): EventMemory {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  const key = { cluster: 'local', namespace: 'shop', name: 'e' }
  memory.put(storedEvent(key, versionOfChange(1, 0), Buffer.from(JSON.stringify(body))))
  return memory
}

test('a search finds what is in names, kinds, notes and reasons, and nothing else', () => {
  const bodies = fc.record({
    note: anyWord,
    reason: anyWord,
    reportingController: anyWord,
    regarding: fc.record({ kind: anyWord, name: anyWord, namespace: anyWord }),
    related: fc.record({ kind: anyWord, name: anyWord, uid: anyWord }),
  })
  const texts = fc.array(
    fc
      .tuple(anyWord, fc.nat({ max: 3 }))
      .map(([word, from]) => word.slice(from).toLowerCase())
      .filter((text) => text !== ''),
    { minLength: 1, maxLength: 2 },
  )
  fc.assert(
    fc.property(bodies, texts, fc.boolean(), fc.boolean(), (parts, wanted, isIn, isAnywhere) => {
      const labels = { web: 'kubelet' }
      const memory = memoryOf({ metadata: { name: 'e', namespace: 'shop', labels }, ...parts })
      const requires = { texts: [{ texts: wanted, isIn, isAnywhere }], isAll: true }
      const selector = { matches: () => true, requires }
      const matcher = new Matcher(memory, { scope: allEvents, selector }, true)
      const { regarding, related } = parts
      const names = [regarding.name, regarding.kind, related.name, related.kind, 'e']
      const searched = [parts.note, parts.reason, ...(isAnywhere ? names : [])]
      const isFound = wanted.some((text) =>
        searched.some((each) => each.toLowerCase().includes(text)),
      )
      assert.equal(matcher.isMatch(0), isFound === isIn)
    }),
    { numRuns: 500 },
  )
})

test('events without a node are found by an empty one, as by a plain test', () => {
  const memory = new EventMemory(defaultMemoryBounds, { now: () => 0 })
  for (const [at, instance] of ['', 'n1'].entries()) {
    const key = { cluster: 'local', namespace: 'shop', name: `e${at}` }
    const metadata = { name: key.name, namespace: key.namespace }
    const body = { metadata, reportingController: 'kubelet', reportingInstance: instance }
    memory.put(storedEvent(key, versionOfChange(at + 1, 0), Buffer.from(JSON.stringify(body))))
  }
  const hits = (...nodes: string[]) => {
    const selector = { matches: () => true, requires: { nodes } }
    const matcher = new Matcher(memory, { scope: allEvents, selector }, true)
    return [...matcher.hitsIn({ slots: [0, 1], length: 2, except: undefined })]
  }
  assert.deepEqual(hits(''), [0])
  assert.deepEqual(hits('n1'), [1])
  assert.deepEqual(hits('', 'n1'), [0, 1])
})
