import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Pull, Pulled } from './pull.ts'

/** Filled by hand. */
class Basket implements Pull<string> {
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
    this.#call()
  }

  fail(failure: Error): void {
    this.#failure = failure
    this.#call()
  }

  stop(): void {
    this.isOver = true
    this.#call()
  }

  #call(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

test('pulled: what is there comes at once, the rest when it comes, and then it is over', async () => {
  const basket = new Basket()
  basket.put('a', 'b')
  const pulled = new Pulled(basket)
  assert.deepEqual(await pulled.next(), { value: 'a', done: false })
  assert.deepEqual(await pulled.next(), { value: 'b', done: false })
  const third = pulled.next()
  basket.put('c')
  assert.deepEqual(await third, { value: 'c', done: false })
  const last = pulled.next()
  basket.stop()
  assert.deepEqual(await last, { value: undefined, done: true })
})

test('pulled: fails as what it pulls from, whether or not somebody waits', async () => {
  for (const isWaited of [false, true]) {
    const basket = new Basket()
    const pulled = new Pulled(basket)
    const waited = isWaited ? pulled.next() : undefined
    basket.fail(new Error('gone'))
    await assert.rejects(waited ?? pulled.next(), /gone/)
    assert.deepEqual(await pulled.next(), { value: undefined, done: true })
  }
})

test('pulled: whoever leaves the loop stops it', async () => {
  const basket = new Basket()
  basket.put('a', 'b')
  for await (const piece of new Pulled(basket)) {
    assert.equal(piece, 'a')
    break
  }
  assert.ok(basket.isOver)
})
