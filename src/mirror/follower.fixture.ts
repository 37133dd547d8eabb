/** Runs followers on a clock that a test moves. */
import { mock } from 'node:test'
import type { Clock } from '../lib/clock.ts'
import { silentLog } from '../lib/log/log.ts'
import { MirrorWriter } from '../registry/mirrored-event.ts'
import { pathOf } from '../storage/event-scope.ts'
import type { PlainStorage } from '../storage/plain-storage.fixture.ts'
import { Follower, type FollowerOptions } from './follower.ts'
import type { MemoryOrigin } from './memory-origin.fixture.ts'
import { MirrorCounters } from './mirror-counters.ts'
import { RequestPacer } from './request-pacer.ts'

const stepMs = 50

export async function settle(ticks = 4): Promise<void> {
  for (let tick = 0; tick < ticks; tick++) await new Promise((resolve) => setImmediate(resolve))
}

/** Moves the clock together with the timers of Node, which the test has mocked. */
export class SteppedClock implements Clock {
  #now = 1_000

  now(): number {
    return this.#now
  }

  /** Advances in small steps, so that the effects of one timer can set the next. */
  async advance(ms: number, isEnough: () => boolean = () => false): Promise<void> {
    for (let at = 0; at < ms && !isEnough(); at += stepMs) {
      this.#now += stepMs
      mock.timers.tick(stepMs)
      await settle()
    }
  }
}

export interface StartOptions extends Partial<FollowerOptions> {
  readonly clock: Clock
  readonly lifetime?: number
}

/** `stop` rejects when the follower failed. */
export function startFollower(
  origin: MemoryOrigin,
  storage: PlainStorage,
  options: StartOptions,
): {
  readonly follower: Follower
  readonly storage: PlainStorage
  readonly counters: MirrorCounters
  readonly outcome: { readonly error?: unknown }
  readonly running: Promise<void>
  readonly stop: () => Promise<void>
} {
  const ending = new AbortController()
  const counters = new MirrorCounters()
  const follower = new Follower({
    origin,
    namespace: undefined,
    position: undefined,
    target: { cluster: 'c', epoch: 0, fence: { key: '/leader', revision: storage.leader } },
    writer: new MirrorWriter({
      storage,
      recall: (key) => storage.events.get(pathOf(key)),
      lifetimeOf: () => options.lifetime ?? 'never',
    }),
    storage,
    deletes: undefined,
    pacer: new RequestPacer(options.clock, 1000),
    counters,
    log: silentLog,
    signal: ending.signal,
    ...options,
  })
  const outcome: { error?: unknown } = {}
  const running = follower.run().catch((error) => {
    outcome.error = error
  })
  const stop = async (): Promise<void> => {
    ending.abort()
    await running
    if (outcome.error !== undefined) throw outcome.error
  }
  return { follower, storage, counters, outcome, running, stop }
}
