import assert from 'node:assert/strict'
import type { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Response } from '../../../src/http/exchange.ts'
import { type Pull, Pulled } from '../../../src/lib/pull.ts'
import { eventually } from '../../support/eventually.ts'
import type { Protocol } from '../../support/http-client.ts'
import { openClient, openSession, PROTOCOLS, startRequest } from '../../support/http-client.ts'
import { startListener } from '../../support/listener.ts'
import { openTls, requestHead } from '../../support/raw-http1.ts'

const MIB = 1024 * 1024

/** A source that the test fills; with `endless` it never runs out of chunks. */
class Basket implements Pull<string>, AsyncIterable<string> {
  readonly #pieces: string[] = []
  readonly #endless: string | undefined
  #wake: (() => void) | undefined
  #failure: Error | undefined
  #isOver = false
  taken = 0

  constructor(endless?: string) {
    this.#endless = endless
  }

  get isOver(): boolean {
    return this.#isOver && this.#pieces.length === 0
  }

  [Symbol.asyncIterator](): Pulled<string> {
    return new Pulled(this)
  }

  take(wake: () => void): string | undefined {
    const piece = this.#pieces.shift() ?? (this.#isOver ? undefined : this.#endless)
    if (piece !== undefined) this.taken += piece.length
    else if (this.#failure !== undefined) throw this.#failure
    else this.#wake = wake
    return piece
  }

  put(...pieces: readonly string[]): void {
    this.#pieces.push(...pieces)
    this.#call()
  }

  stop(): void {
    this.#isOver = true
    this.#call()
  }

  fail(failure: Error): void {
    this.#failure = failure
    this.#call()
  }

  #call(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

for (const protocol of PROTOCOLS) {
  describe(`a pulled response over ${protocol}`, () => {
    test('arrives chunk by chunk, ends cleanly, and its bytes are counted', async () => {
      const basket = new Basket()
      const ended = Promise.withResolvers<number>()
      await using server = await startListener(async () =>
        answer(basket, ({ bytes }) => ended.resolve(bytes)),
      )
      using client = await openClient(protocol, server.port)
      const opened = await client.open({ path: '/' })
      basket.put('one ')
      assert.equal((await opened.read())?.toString(), 'one ')
      basket.put('two ', 'three')
      basket.stop()
      assert.equal(await rest(opened), 'two three')
      assert.equal(await ended.promise, 'one two three'.length)
      assert.deepEqual(server.bugs, [])
    })

    test('pauses for a client that does not read, and continues when it does', async () => {
      const basket = new Basket('x'.repeat(16 * 1024))
      await using server = await startListener(async () => answer(basket))
      using client = await openUnread(protocol, server.port)
      let before = -1
      await eventually('it stands still', async () => {
        const isStill = basket.taken === before && before > 0
        before = basket.taken
        await sleep(200)
        return isStill
      })
      assert.ok(before < 16 * MIB, `${before} bytes were taken for a client that reads nothing`)
      basket.stop()
      assert.equal(await countOf('x', client.stream), before)
    })

    test('is stopped when its client disconnects while its window is full', async () => {
      const basket = new Basket('x'.repeat(16 * 1024))
      await using server = await startListener(async () => answer(basket))
      const client = await openClient(protocol, server.port)
      await client.open({ path: '/' })
      await eventually('something was taken', () => basket.taken > 0)
      client[Symbol.dispose]()
      await eventually('it is over', () => basket.isOver)
      assert.deepEqual(server.bugs, [])
    })

    test('is cut when its source fails, which is reported', async () => {
      const basket = new Basket()
      await using server = await startListener(async () => answer(basket))
      using client = await openClient(protocol, server.port)
      const opened = await client.open({ path: '/' })
      basket.put('one ')
      assert.equal((await opened.read())?.toString(), 'one ')
      basket.fail(new Error('torn'))
      await assert.rejects(rest(opened))
      assert.match(String(server.bugs[0]), /torn/)
    })
  })
}

function answer(body: Basket, onEnd: NonNullable<Response['onEnd']> = () => {}): Response {
  return { status: 200, headers: {}, body, longRunning: true, onEnd }
}

/** Requests a response and does not read it. */
async function openUnread(
  protocol: Protocol,
  port: number,
): Promise<Disposable & { readonly stream: Readable }> {
  if (protocol === 'h1') {
    const stream = await openTls(port, { ALPNProtocols: ['http/1.1'] })
    stream.pause()
    stream.write(requestHead({ path: '/', headers: { connection: 'close' } }))
    return { stream, [Symbol.dispose]: () => void stream.destroy() }
  }
  const session = await openSession(port)
  return { stream: startRequest(session, { path: '/' }), [Symbol.dispose]: () => session.destroy() }
}

async function countOf(letter: string, stream: Readable): Promise<number> {
  let count = 0
  for await (const piece of stream) {
    for (const byte of piece) if (byte === letter.charCodeAt(0)) count++
  }
  return count
}

async function rest(opened: { read(): Promise<Buffer | undefined> }): Promise<string> {
  let all = ''
  for (let piece = await opened.read(); piece !== undefined; piece = await opened.read()) {
    all += piece.toString()
  }
  return all
}
