/** Connections that survive restarts of the server at the other end. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ApiAnswer,
  type ApiCall,
  type EventClient,
  EventWatch,
} from '../../support/event-client.ts'
import type { WatchFrame } from '../../support/wire-event.ts'

const requestMsMax = 15_000
const retryMs = 200

/** One connection, opened again after a failure. The failed request itself is not repeated. */
export class Session implements Disposable {
  readonly #open: () => Promise<EventClient>
  #client: Promise<EventClient> | undefined

  constructor(open: () => Promise<EventClient>) {
    this.#open = open
  }

  async request(call: ApiCall): Promise<ApiAnswer> {
    this.#client ??= this.#open()
    const mine = this.#client
    const late = AbortSignal.timeout(requestMsMax)
    try {
      const client = await mine
      const cut = (): void => client.session.destroy()
      late.addEventListener('abort', cut)
      try {
        return await client.request(call)
      } finally {
        late.removeEventListener('abort', cut)
      }
    } catch (error) {
      if (this.#client === mine) this.#client = undefined
      mine.then((client) => client.session.destroy()).catch(() => {})
      throw error
    }
  }

  /** Repeats a read until it succeeds. */
  async read<T>(path: string): Promise<T> {
    for (;;) {
      try {
        const { status, body } = await this.request({ path })
        if (status === 200) return JSON.parse(body.toString('utf8'))
      } catch {
        // Tried again below.
      }
      await sleep(retryMs)
    }
  }

  [Symbol.dispose](): void {
    this.#client?.then((client) => client.session.destroy()).catch(() => {})
  }
}

export interface FollowOptions {
  readonly open: () => Promise<EventClient>
  readonly path: string
  /** The version to start after. */
  readonly from: string
  readonly signal: AbortSignal
  /** Called with every frame except bookmarks. */
  readonly onFrame: (frame: WatchFrame) => void
}

/** Watches until aborted, and resumes after breaks. Rejects on 410: then changes are unknown. */
export async function follow(options: FollowOptions): Promise<void> {
  const position = { from: options.from }
  while (!options.signal.aborted) {
    try {
      await watchOnce(options, position)
    } catch (error) {
      if (error instanceof Expired) throw error
    }
    await sleep(retryMs)
  }
}

async function watchOnce(options: FollowOptions, position: { from: string }): Promise<void> {
  for await (const { type, object } of frames({ ...options, ...position })) {
    if (type === 'ERROR') {
      if (object.code === 410) throw new Expired(`${options.path} from ${position.from}`)
      return
    }
    position.from = object.metadata.resourceVersion ?? position.from
    if (type !== 'BOOKMARK') options.onFrame({ type, object })
  }
}

export class Expired extends Error {}

async function* frames(options: FollowOptions): AsyncGenerator<WatchFrame> {
  const { path, from, signal } = options
  using client = await options.open()
  const stop = (): void => client.session.destroy()
  signal.addEventListener('abort', stop)
  try {
    const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${from}&timeoutSeconds=600`
    const stream = client.send({ path: `${path}?${query}` })
    yield* new EventWatch(stream)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
