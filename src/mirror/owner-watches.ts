/** Follows the owners of all pods, ReplicaSets and Jobs of a cluster, beside its events. */
import type { KnownOwners } from '../incidents/known-owners.ts'
import { pause } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { Semaphore } from '../lib/semaphore.ts'
import { OwnersFollower } from './owners-follower.ts'
import { OWNED_RESOURCES, type OwnersOrigin } from './owners-origin.ts'
import { RequestPacer } from './request-pacer.ts'

/** In addition to the requests for events, which do not wait for these. */
const requestsPerSecond = 2
const restartAfterMs = 60_000

export interface OwnerWatchesOptions {
  readonly origin: OwnersOrigin
  readonly known: Pick<KnownOwners, 'own' | 'disown'>
  readonly cluster: string
  /** Undefined for all namespaces. */
  readonly namespaces: readonly string[] | undefined
  readonly clock: Clock
  readonly log: Log
}

export class OwnerWatches {
  readonly #options: OwnerWatchesOptions
  readonly #pacer: RequestPacer
  readonly #pages = new Semaphore(1)
  #followers: readonly OwnersFollower[] = []

  constructor(options: OwnerWatchesOptions) {
    this.#options = options
    this.#pacer = new RequestPacer(options.clock, requestsPerSecond)
  }

  /** Which owners are unknown and why; empty when nothing is wrong. */
  get message(): string {
    const failed = this.#followers.filter(({ message }) => message !== '')
    const [first] = failed
    if (first === undefined) return ''
    const names = new Set(failed.map(({ resource }) => resource.resource))
    return `owners of ${[...names].join(', ')} are unknown: ${first.message}`
  }

  /** Whether everything up to a moment ago is known, by resource; empty unless it runs. */
  get following(): ReadonlyMap<string, boolean> {
    const following = new Map<string, boolean>()
    for (const { resource, isFollowing } of this.#followers) {
      following.set(resource.resource, isFollowing && following.get(resource.resource) !== false)
    }
    return following
  }

  /** Lists everything, then follows it until aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { namespaces, ...options } = this.#options
    const streams: readonly (string | undefined)[] = namespaces ?? [undefined]
    this.#followers = OWNED_RESOURCES.flatMap((resource) =>
      streams.map(
        (namespace) =>
          new OwnersFollower({
            ...options,
            resource,
            namespace,
            pacer: this.#pacer,
            pages: this.#pages,
            signal,
          }),
      ),
    )
    await Promise.all(this.#followers.map((follower) => this.#runAgain(follower, signal)))
    this.#followers = []
  }

  /** A bug in the handling of owners must not affect the events. */
  async #runAgain(follower: OwnersFollower, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await follower.run()
      } catch (err) {
        const stack = err instanceof Error ? err.stack : undefined
        this.#options.log.error('Following owners failed and will be restarted', { err, stack })
        await pause(restartAfterMs, signal)
      }
    }
  }
}
