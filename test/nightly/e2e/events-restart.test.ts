import assert from 'node:assert/strict'
import { constants } from 'node:http2'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ApiError,
  CutError,
  type EventClient,
  type EventWatch,
} from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import { atPace, isFull } from '../../support/load.ts'
import { Replicas } from '../../support/replicas.ts'
import { added, type Change, changeOf, sequenceFaults } from '../../support/watch-sequence.ts'
import { makeEvent } from '../../support/wire-event.ts'

const WATCHERS = 100
const RESTARTS = isFull ? 20 : 4
const PER_SECOND = 100
const NAMESPACE = 'rolled'
/** How long a client looks for a replica that responds. */
const PATIENCE_MS = 15_000

describe('rolling restarts of replicas', () => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    test(`${WATCHERS} watchers that resume miss and repeat nothing when replicas restart with ${signal}`, async (t) => {
      await using replicas = await Replicas.start(2)
      using client = await replicas.client(0)
      const { metadata } = await client.list(NAMESPACE)
      using stack = new DisposableStack()
      const followers = Array.from({ length: WATCHERS }, (_, index) =>
        stack.use(new Follower(replicas, index % 2, metadata.resourceVersion)),
      )
      await eventually('all watch', () => followers.every(({ begun }) => begun > 0))

      const writer = new Writer(replicas)
      const rolling = rollAll(replicas, signal)
      let count = 0
      while (!rolling.isOver) {
        const first = count
        count += PER_SECOND
        await atPace({ count: PER_SECOND, perSecond: PER_SECOND }, (index) =>
          writer.create(`e-${first + index}`),
        )
      }
      await rolling.done

      using reader = await replicas.client(1)
      const { items } = await reader.list(NAMESPACE)
      assert.deepEqual(
        items.map((item) => item.metadata.name).sort(),
        [...writer.settled].sort(),
        'all acknowledged events exist, and no others',
      )
      const owed = items.map(added).sort((one, other) => one.version - other.version)
      for (const follower of followers) {
        await eventually('all of it', () => follower.seen.length >= owed.length, 10_000)
        assert.deepEqual(sequenceFaults(owed, follower.seen), [])
      }
      const ends = followers.reduce((sum, { clean }) => sum + clean, 0)
      const cuts = followers.flatMap(({ cuts }) => cuts)
      t.diagnostic(
        `${RESTARTS} restarts, ${count} creates (${writer.unknown.length} answers lost), ` +
          `${ends} watches ended normally, ${cuts.length} cut`,
      )
      assert.ok(ends + cuts.length >= (WATCHERS * RESTARTS) / 2, 'the restarts ended watches')
      if (signal === 'SIGTERM') {
        assert.deepEqual(cuts, [])
        assert.deepEqual(writer.unknown, [], 'no create loses its response')
      }
    })
  }
})

interface Rolling {
  readonly isOver: boolean
  readonly done: Promise<void>
}

/** Restarts one replica after the other, each back before the next one ends. */
function rollAll(replicas: Replicas, signal: NodeJS.Signals): Rolling {
  const state = { isOver: false }
  const roll = async (): Promise<void> => {
    for (let round = 0; round < RESTARTS; round++) {
      await sleep(500)
      const server = replicas.server(round % 2)
      server.kill(signal)
      const { code } = await server.ended
      if (signal === 'SIGTERM') assert.equal(code, 0)
      await replicas.startOne(round % 2)
    }
    await sleep(500)
  }
  const done = roll().finally(() => {
    state.isOver = true
  })
  done.catch(() => {}) // Handled by the caller that awaits it.
  return {
    get isOver() {
      return state.isOver
    },
    done,
  }
}

/** Watches as an informer does: when a watch ends, it resumes at the other replica. */
class Follower implements Disposable {
  readonly seen: Change[] = []
  /** Watches that the server ended normally. */
  clean = 0
  readonly cuts: unknown[] = []
  begun = 0
  readonly #replicas: Replicas
  #replica: number
  #version: string
  #client: EventClient | undefined
  #isStopped = false

  constructor(replicas: Replicas, replica: number, version: string) {
    this.#replicas = replicas
    this.#replica = replica
    this.#version = version
    this.#run().catch((error: unknown) => this.cuts.push(error))
  }

  [Symbol.dispose](): void {
    this.#isStopped = true
    this.#client?.[Symbol.dispose]()
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      await this.#follow()
      this.#client?.[Symbol.dispose]()
      this.#replica = 1 - this.#replica
    }
  }

  async #follow(): Promise<void> {
    const watch = await this.#open()
    if (watch === undefined) return
    this.begun += 1
    try {
      for await (const frame of watch) {
        assert.notEqual(frame.type, 'ERROR', JSON.stringify(frame))
        this.seen.push(changeOf(frame))
        this.#version = frame.object.metadata.resourceVersion ?? ''
      }
      this.clean += 1
    } catch (error) {
      if (!this.#isStopped) this.cuts.push(error)
    }
  }

  /** Undefined when the replica cannot be reached, or does not respond any more. */
  async #open(): Promise<EventWatch | undefined> {
    try {
      this.#client = await this.#replicas.client(this.#replica)
      return await this.#client.watch(NAMESPACE, { resourceVersion: this.#version })
    } catch {
      await sleep(20)
      return undefined
    }
  }
}

/** Creates through a replica that responds. */
class Writer {
  /** Names that are known to exist. */
  readonly settled = new Set<string>()
  /** Errors of requests that were sent and got no response. */
  readonly unknown: unknown[] = []
  readonly #replicas: Replicas
  #client: Promise<EventClient> | undefined
  #replica = 0

  constructor(replicas: Replicas) {
    this.#replicas = replicas
  }

  async create(name: string): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS
    for (let isRetry = false; ; isRetry = true) {
      try {
        await this.#createOnce(name, isRetry)
        this.settled.add(name)
        return
      } catch (error) {
        if (error instanceof ApiError || performance.now() > deadline) throw error
        await sleep(20)
      }
    }
  }

  async #createOnce(name: string, isRetry: boolean): Promise<void> {
    this.#client ??= this.#replicas.client(this.#replica)
    const mine = this.#client
    try {
      const client = await mine
      if (client.session.closed || client.session.destroyed) throw new Error('going away')
      try {
        await client.create(makeEvent(NAMESPACE, name))
      } catch (error) {
        const isDone = isRetry && error instanceof ApiError && error.status === 409
        if (isDone) return
        if (!(error instanceof ApiError) && !isRefused(error)) this.unknown.push(error)
        throw error
      }
    } catch (error) {
      if (this.#client === mine) {
        this.#client = undefined
        this.#replica = 1 - this.#replica
      }
      throw error
    }
  }
}

/** The server has reported that the request was not processed. */
function isRefused(error: unknown): boolean {
  return error instanceof CutError && error.code === constants.NGHTTP2_REFUSED_STREAM
}
