import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Pull, Pulled } from './pull.ts'

/** A source that the test fills by hand. */
class ManualSource implements Pull<string> {
  readonly #pieces: string[] = []
  #wake: (() => void) | undefined
  #failure: Error | undefined
  isOver = false

  take(wake: () => void): string | undefined {
    const piece = this.#pieces.shift()
    if (piece !== undefined) return piece
    if (this.#failure !== undefined) {
      const failure = this.#failure
      this.#failure = undefined
      this.isOver = true
      throw failure
    }
    this.#wake = wake
    return undefined
  }

  put(...pieces: readonly string[]): void {
    this.#pieces.push(...pieces)
    this.#notify()
  }

  fail(failure: Error): void {
    this.#failure = failure
    this.#notify()
  }

  stop(): void {
    this.isOver = true
    this.#notify()
  }

  #notify(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

test('Pulled: returns buffered pieces immediately, waits for more, and ends', async () => {
  const source = new ManualSource()
  source.put('a', 'b')
  const pulled = new Pulled(source)
  assert.deepEqual(await pulled.next(), { value: 'a', done: false })
  assert.deepEqual(await pulled.next(), { value: 'b', done: false })
  const third = pulled.next()
  source.put('c')
  assert.deepEqual(await third, { value: 'c', done: false })
  const last = pulled.next()
  source.stop()
  assert.deepEqual(await last, { value: undefined, done: true })
})

test('Pulled: fails with the error of its source, with or without a pending read', async () => {
  for (const isPending of [false, true]) {
    const source = new ManualSource()
    const pulled = new Pulled(source)
    const pending = isPending ? pulled.next() : undefined
    source.fail(new Error('gone'))
    await assert.rejects(pending ?? pulled.next(), /gone/)
    assert.deepEqual(await pulled.next(), { value: undefined, done: true })
  }
})

test('Pulled: stops its source when a for-await loop is left', async () => {
  const source = new ManualSource()
  source.put('a', 'b')
  for await (const piece of new Pulled(source)) {
    assert.equal(piece, 'a')
    break
  }
  assert.ok(source.isOver)
})
