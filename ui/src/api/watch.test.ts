import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NO_FILTERS } from '../model/query.ts'
import { ApiError } from './api-error.ts'
import type { ApiClient, Ask } from './client.ts'
import { EventWatch, type Pace, type WatchLink } from './watch.ts'

/** One response of the server: pieces of its body, and how it goes on after them. */
interface Script {
  readonly pieces?: readonly (string | Uint8Array)[]
  readonly afterwards?: 'end' | 'fail' | 'silence'
  readonly lastsMs?: number
  readonly error?: ApiError
}

function frame(type: string, version: number, members: object = {}): string {
  const metadata = { name: `e${version}`, namespace: 'shop', resourceVersion: String(version) }
  return `${JSON.stringify({ type, object: { metadata, ...members } })}\n`
}

/** A server that plays its scripts, one for each watch, and a clock that jumps. */
class Play {
  nowMs = 0
  readonly asked: Record<string, string>[] = []
  readonly links: WatchLink[] = []
  readonly changes: string[] = []
  readonly slept: number[] = []
  /** The version of lists; undefined: lists fail. */
  listVersion: string | undefined = '100'
  restCount = 0
  skippedCount = 0
  readonly #scripts: Script[]
  readonly #stop = new AbortController()

  constructor(...scripts: Script[]) {
    this.#scripts = scripts
  }

  async run(watch: EventWatch = this.watch()): Promise<'expired' | 'stopped'> {
    return await watch.run(this.#stop.signal)
  }

  watch(): EventWatch {
    return new EventWatch({
      client: { stream: this.#stream, get: this.#get as ApiClient['get'] },
      filters: { ...NO_FILTERS, namespace: 'shop', type: 'Warning' },
      from: '100',
      pace: this.#pace,
      onChange: ({ row }) => this.changes.push(row.name),
      onSkipped: () => this.skippedCount++,
      onLink: (link) => this.links.push(link),
    })
  }

  /** The texts of what the user sees of the connection. */
  get waits(): readonly string[] {
    return this.links.flatMap((link) => (link.kind === 'waiting' ? [link.error.message] : []))
  }

  readonly #stream = async (
    path: string,
    { parameters = {}, signal }: Ask = {},
  ): Promise<ReadableStream<Uint8Array>> => {
    assert.equal(path, 'api/v1/namespaces/shop/events')
    const script = this.#scripts.shift()
    if (script === undefined) {
      this.#stop.abort()
      throw new DOMException('stopped', 'AbortError')
    }
    this.asked.push({ ...parameters })
    if (script.error !== undefined) throw script.error
    const { pieces = [], afterwards = 'end', lastsMs = 10_000 } = script
    const left = pieces.map((piece) =>
      typeof piece === 'string' ? new TextEncoder().encode(piece) : piece,
    )
    return new ReadableStream({
      start: () => {
        this.nowMs += lastsMs
      },
      pull: (controller) => {
        const piece = left.shift()
        if (piece !== undefined) controller.enqueue(piece)
        else if (afterwards === 'end') controller.close()
        else if (afterwards === 'fail') controller.error(new TypeError('network error'))
        else signal?.addEventListener('abort', () => controller.error(signal.reason))
      },
    })
  }

  readonly #get = async (): Promise<unknown> => {
    if (this.listVersion === undefined) {
      throw new ApiError({ code: 503, reason: '', message: 'no etcd', retryAfterSeconds: 9 })
    }
    return { metadata: { resourceVersion: this.listVersion }, items: [] }
  }

  readonly #pace: Pace = {
    nowMs: () => this.nowMs,
    random: () => 0,
    sleep: async (ms, signal) => {
      // The server responds before the timeout.
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
      signal.throwIfAborted()
      this.slept.push(ms)
      this.nowMs += ms
    },
    rest: () => {
      this.restCount++
      return undefined
    },
  }
}

describe('a watch', () => {
  test('requests changes since the list, with a timeout and bookmarks', async () => {
    const play = new Play({ pieces: [frame('ADDED', 101), frame('DELETED', 102)] })
    await play.run()
    assert.deepEqual(play.asked, [
      {
        watch: 'true',
        allowWatchBookmarks: 'true',
        timeoutSeconds: '240',
        resourceVersion: '100',
        fieldSelector: 'type=Warning',
      },
    ])
    assert.deepEqual(play.changes, ['e101'])
    assert.equal(play.restCount, 2)
  })

  test('resumes at once from the last version when a response ends', async () => {
    const play = new Play(
      { pieces: [frame('ADDED', 101), frame('BOOKMARK', 150)] },
      { pieces: [frame('BOOKMARK', 150), frame('MODIFIED', 151)] },
      { pieces: [frame('DELETED', 160)] },
      {},
    )
    await play.run()
    assert.deepEqual(
      play.asked.map((one) => one['resourceVersion']),
      ['100', '150', '151', '160'],
    )
    assert.deepEqual(play.changes, ['e101', 'e151'])
    assert.deepEqual(play.waits, [])
  })

  test('backs off after failures, and never retries earlier than Retry-After', async () => {
    const busy = new ApiError({ code: 429, reason: '', message: 'busy', retryAfterSeconds: 7 })
    const away = new ApiError({ code: 0, reason: 'NoResponse', message: 'away' })
    const play = new Play(
      { pieces: [frame('ADDED', 101)], afterwards: 'fail' },
      { error: away },
      { error: away },
      { error: busy },
      { pieces: [frame('ADDED', 102)] },
      { afterwards: 'fail', lastsMs: 0 },
    )
    await play.run()
    assert.deepEqual(play.slept, [500, 1_000, 2_000, 7_000, 500])
    assert.deepEqual(play.changes, ['e101', 'e102'])
    const cannot = 'The server cannot be reached.'
    assert.deepEqual(play.waits, [cannot, 'away', 'away', 'busy', cannot])
  })

  test('pauses when responses end at once', async () => {
    const play = new Play({ lastsMs: 0 }, { lastsMs: 0, pieces: [frame('BOOKMARK', 101)] })
    await play.run()
    assert.deepEqual(play.slept, [500, 1_000])
  })

  test('expires only when the server says so', async () => {
    const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' }
    const frames = JSON.stringify({ type: 'ERROR', object: status })
    for (const script of [
      { pieces: [`${frames}\n`] },
      { error: new ApiError({ code: 410, reason: 'Expired', message: '' }) },
    ]) {
      assert.equal(await new Play(script).run(), 'expired')
    }
  })

  test('expires when the store was restored to an older version', async () => {
    assert.equal(await new Play({ pieces: [frame('BOOKMARK', 50)] }).run(), 'expired')
    assert.equal(await new Play({ pieces: [frame('ADDED', 50)] }).run(), 'expired')
    const silent = new Play({ afterwards: 'silence' })
    silent.listVersion = '99'
    assert.equal(await silent.run(), 'expired')
  })

  test('resumes after silence, and lists to find out why', async () => {
    const play = new Play({ afterwards: 'silence' }, { afterwards: 'silence' }, {})
    await play.run()
    assert.deepEqual(play.slept.slice(0, 2), [80_000, 500])
    assert.equal(play.waits[0], 'The server has not sent anything for a while.')
    const broken = new Play({ afterwards: 'silence' })
    broken.listVersion = undefined
    await broken.run()
    assert.deepEqual(broken.waits, ['no etcd'])
    assert.deepEqual(broken.slept, [80_000, 9_000])
  })

  test('ends with an error that a retry cannot fix', async () => {
    for (const code of [400, 401, 403, 404]) {
      const play = new Play({ error: new ApiError({ code, reason: '', message: 'no' }) })
      await assert.rejects(play.run(), { code })
    }
  })

  test('reports the reason from the next response when access is revoked', async () => {
    const object = { kind: 'Status', code: 403, message: 'gone' }
    const forbidden = new ApiError({ code: 403, reason: 'Forbidden', message: 'not allowed' })
    const frames = `${JSON.stringify({ type: 'ERROR', object })}\n`
    const play = new Play({ pieces: [frames] }, { error: forbidden })
    await assert.rejects(play.run(), { message: 'not allowed' })
  })

  test('continues after a change that is too long, and reports it', async () => {
    const long = frame('ADDED', 101, { message: 'x'.repeat(3 * 1024 * 1024) })
    const play = new Play({ pieces: [long, frame('ADDED', 102)] }, { pieces: [long] })
    await play.run()
    assert.deepEqual(play.changes, ['e102'])
    assert.equal(play.skippedCount, 2)
  })

  test('retries after a response that is not a watch', async () => {
    const play = new Play({ pieces: ['<html>\n'] }, { pieces: [frame('ADDED', 101)] })
    await play.run()
    assert.deepEqual(play.changes, ['e101'])
  })
})
