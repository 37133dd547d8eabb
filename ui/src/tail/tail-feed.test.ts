import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiError } from '../api/api-error.ts'
import type { ApiClient, Ask } from '../api/client.ts'
import { NO_FILTERS } from '../model/query.ts'
import { TailFeed } from './tail-feed.ts'

const expired = new ApiError({ code: 410, reason: 'Expired', message: 'too old' })
const forbidden = new ApiError({ code: 403, reason: 'Forbidden', message: 'not allowed' })

function event(name: string, version: number, type = 'Normal'): object {
  const metadata = { name, namespace: 'shop', resourceVersion: String(version) }
  return { metadata, type, lastTimestamp: new Date(version * 1_000).toISOString() }
}

/** What the server answers to each watch: changes, then an error. */
interface Answer {
  readonly changes?: readonly object[]
  readonly error?: ApiError
}

/** A server with answers for so many watches, and a clock that jumps. The feed is closed after them. */
class Play {
  nowMs = 100_000
  items: readonly object[] = []
  next = ''
  readonly lists: Record<string, string>[] = []
  readonly slept: number[] = []
  readonly links: string[] = []
  readonly feed: TailFeed
  readonly #answers: Answer[]

  constructor(...answers: Answer[]) {
    this.#answers = answers
    const client = { get: this.#get, stream: this.#stream } as unknown as ApiClient
    this.feed = new TailFeed({
      client,
      filters: NO_FILTERS,
      onUpdate: () => {
        const { kind } = this.feed.link
        if (this.links.at(-1) !== kind) this.links.push(kind)
      },
      pace: {
        nowMs: () => this.nowMs,
        random: () => 0,
        rest: () => undefined,
        sleep: async (ms, signal) => {
          for (let turn = 0; turn < 50; turn++) await Promise.resolve()
          signal.throwIfAborted()
          this.slept.push(ms)
          this.nowMs += ms
        },
      },
    })
  }

  get gaps(): readonly object[] {
    return this.feed.buffer.entries.flatMap((entry) =>
      entry.kind === 'gap' ? [[entry.fromMs, entry.toMs, entry.isListed]] : [],
    )
  }

  readonly #get = async (_: string, { parameters = {} }: Ask = {}): Promise<unknown> => {
    this.lists.push({ ...parameters })
    const metadata = { resourceVersion: '100', continue: this.next }
    return { metadata, items: this.items }
  }

  readonly #stream = async (): Promise<ReadableStream<Uint8Array>> => {
    const answer = this.#answers.shift()
    if (answer === undefined) {
      this.feed.close()
      throw new DOMException('closed', 'AbortError')
    }
    this.nowMs += 10_000
    const { changes = [], error } = answer
    if (changes.length === 0 && error !== undefined) throw error
    const frames = changes.map((object) => `${JSON.stringify({ type: 'ADDED', object })}\n`)
    return new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(frames.join('')))
      },
      pull: (controller) => controller.error(error ?? new TypeError('cut')),
    })
  }
}

describe('a feed', () => {
  test('lists after a gap only events since its beginning', async () => {
    const play = new Play({ error: expired })
    await play.feed.run()
    assert.deepEqual(
      play.lists.map((list) => [list['limit'], list['fieldSelector']]),
      [
        ['100', undefined],
        // A minute before: clocks differ.
        ['500', `since=${new Date(40_000).toISOString()}`],
      ],
    )
    assert.deepEqual(play.gaps, [[100_000, 110_000, true]])
  })

  test('reports missing events when a gap has more than can be listed', async () => {
    const play = new Play({ error: expired })
    play.next = 'more'
    await play.feed.run()
    assert.deepEqual(play.gaps, [[100_000, 110_000, false]])
  })

  test('waits after the second consecutive expiry, and shows one gap', async () => {
    const play = new Play(...Array.from({ length: 5 }, () => ({ error: expired })))
    await play.feed.run()
    assert.deepEqual(play.slept, [500, 1_000, 2_000, 4_000])
    assert.deepEqual(play.gaps, [[100_000, 100_000 + 5 * 10_000 + 7_500, true]])
  })

  test('does not wait after an expiry that followed changes', async () => {
    const play = new Play(
      { error: expired },
      { changes: [event('a', 101)], error: expired },
      { changes: [event('b', 102)], error: expired },
    )
    await play.feed.run()
    assert.deepEqual(play.slept, [])
    assert.equal(play.gaps.length, 3)
  })

  test('keeps its rows after a failure, and continues where it stopped', async () => {
    const play = new Play(
      { changes: [event('a', 101)], error: forbidden },
      { changes: [event('b', 102)] },
    )
    await play.feed.run()
    assert.equal(play.feed.link.kind, 'failed')
    assert.equal(play.feed.buffer.entries.length, 1)
    play.feed.retryNow()
    while (play.feed.buffer.entries.length < 2) await new Promise((done) => setTimeout(done, 1))
    assert.equal(play.lists.length, 1)
    assert.deepEqual(play.gaps, [])
  })

  test('does not count the rows of the first list as new', async () => {
    const play = new Play({ changes: [event('b', 102, 'Warning')] })
    play.items = [event('a', 90, 'Warning')]
    await play.feed.run()
    assert.deepEqual(play.feed.first, { events: 1, warnings: 1 })
    assert.deepEqual(play.feed.buffer.arrived, { events: 2, warnings: 2 })
  })
})
