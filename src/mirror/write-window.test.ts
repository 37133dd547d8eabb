import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WriteResult } from '../registry/mirrored-event.ts'
import { StorageError } from '../storage/errors.ts'
import { seededRandom } from './memory-origin.fixture.ts'
import { WriteWindow, type WriteWindowOptions } from './write-window.ts'

const clock = { now: () => 0 }

function start(options: Partial<WriteWindowOptions> = {}) {
  const ending = new AbortController()
  const results: WriteResult[] = []
  const retried: string[] = []
  const failures: unknown[] = []
  const window = new WriteWindow({
    position: undefined,
    signal: ending.signal,
    clock,
    onResult: (result) => results.push(result),
    onRetry: ({ kind }) => retried.push(kind),
    onFailure: (error) => {
      failures.push(error)
      ending.abort()
    },
    ...options,
  })
  /** Adds a write that ends when the test ends it. */
  const add = async (key: string, version: string, bytes = 1) => {
    const write = Promise.withResolvers<WriteResult>()
    let hasStarted = false
    await window.add({
      key,
      version,
      bytes,
      apply: () => {
        hasStarted = true
        return write.promise
      },
    })
    return { ...write, started: () => hasStarted }
  }
  return { window, add, ending, results, retried, failures }
}

async function settle(): Promise<void> {
  for (let tick = 0; tick < 5; tick++) await new Promise((resolve) => setImmediate(resolve))
}

test('stays before the first write that has not ended', async () => {
  const { window, add } = start({ position: '5' })
  const one = await add('a', '9')
  const two = await add('b', '10')
  window.mark('12')
  const three = await add('c', '13')
  two.resolve('stored')
  await settle()
  assert.equal(window.position, '5')
  one.resolve('equal')
  await settle()
  assert.equal(window.position, '12', 'the mark is passed with the writes before it')
  three.resolve('stored')
  await window.drained()
  assert.equal(window.position, '13')
})

test('does not accumulate marks behind one write in progress', async () => {
  const { window, add } = start()
  const one = await add('a', '1')
  for (let version = 2; version < 1000; version++) window.mark(String(version))
  assert.equal(window.pending, 2)
  one.resolve('stored')
  await settle()
  assert.equal(window.position, '999')
})

test('never moves the position back, and ignores strings that are not versions', async () => {
  const { window } = start({ position: '100' })
  window.mark('99')
  assert.equal(window.position, '100')
  window.mark('')
  window.mark('x')
  assert.equal(window.position, '100')
})

test('applies writes of one key in order, even if one is repeated', async () => {
  const { window, retried } = start()
  const order: string[] = []
  let attempts = 0
  const write = (key: string, text: string, apply: () => Promise<WriteResult>) =>
    window.add({
      key,
      version: undefined,
      bytes: 1,
      apply: async () => {
        order.push(text)
        return apply()
      },
    })
  await write('a', 'a1', async () => {
    if (++attempts === 1) throw new StorageError({ kind: 'timeout', message: 'unknown' })
    return 'stored'
  })
  await write('a', 'a2', async () => 'removed')
  await write('b', 'b1', async () => 'stored')
  await window.drained()
  assert.deepEqual(order, ['a1', 'b1', 'a1', 'a2'])
  assert.deepEqual(retried, ['timeout'])
})

test('repeats a failed write no sooner than the store asks for', async () => {
  const { window } = start()
  const at: number[] = []
  await window.add({
    key: 'a',
    version: undefined,
    bytes: 1,
    apply: async () => {
      at.push(performance.now())
      if (at.length > 1) return 'stored'
      throw new StorageError({ kind: 'overloaded', message: 'full', retryAfterMs: 300 })
    },
  })
  await window.drained()
  assert.ok((at[1] ?? 0) - (at[0] ?? 0) >= 295, String(at))
})

for (const [what, bounds, bytes] of [
  ['entries', { entriesMax: 3 }, 1],
  ['bytes', { bytesMax: () => 30 }, 10],
] as const) {
  test(`a full window waits: number of ${what}`, async () => {
    const { window, add } = start(bounds)
    const writes = [
      await add('1', '1', bytes),
      await add('2', '2', bytes),
      await add('3', '3', bytes),
    ]
    const fourth = add('4', '4', bytes)
    writes[1]?.resolve('stored')
    await settle()
    // A write that ended behind one in progress still counts: the position needs it.
    assert.equal(window.pending, 3)
    writes[0]?.resolve('stored')
    await fourth
    assert.equal(window.pending, 2)
  })
}

test('applies a write larger than the window alone', async () => {
  const { window, add } = start({ bytesMax: () => 10 })
  const large = await add('a', '1', 100)
  large.resolve('stored')
  await window.drained()
  assert.equal(window.position, '1')
})

test('gives up pending writes and accepts no more after a fenced write', async () => {
  const { window, add, failures } = start({ position: '1' })
  const one = await add('a', '2')
  const two = await add('b', '3')
  const fenced = new StorageError({ kind: 'fenced', message: 'another replica leads' })
  one.reject(fenced)
  await settle()
  assert.deepEqual(failures, [fenced])
  two.resolve('stored')
  await window.drained()
  const three = await add('c', '4')
  assert.ok(!three.started())
  assert.equal(window.position, '1')
})

test('has ended everything up to the position, in any order of completion', async () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seededRandom(seed)
    const { window, add } = start()
    const open = new Map<number, (result: WriteResult) => void>()
    for (let version = 1; version <= 60; version++) {
      if (random() < 0.2) window.mark(String(version))
      else open.set(version, (await add(String(version), String(version))).resolve)
      while (random() < 0.45 && open.size > 0) {
        const chosen = [...open.keys()][Math.floor(random() * open.size)] ?? 0
        open.get(chosen)?.('stored')
        open.delete(chosen)
      }
      await new Promise((resolve) => setImmediate(resolve))
      const first = Math.min(...open.keys())
      const expected = open.size === 0 ? version : first - 1
      assert.equal(window.position ?? '0', String(expected), `seed ${seed}, version ${version}`)
    }
  }
})
