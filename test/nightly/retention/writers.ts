import { pause } from '../../../src/lib/abort.ts'
import type { EventClient } from '../../support/event-client.ts'
import type { Random } from '../../support/random.ts'
import type { Replicas } from '../../support/replicas.ts'
import { makeEvent } from '../../support/wire-event.ts'
import type { Judge } from './judge.ts'
import { NAMESPACES, REASONS } from './policies.ts'

const SEEN_AGO_MS_MAX = 60_000
const RETRY_MS = 100
const RECENT_MAX = 300

export interface WriterOptions {
  readonly replicas: Replicas
  readonly replica: number
  readonly judge: Judge
  readonly random: Random
  readonly everyMs: number
}

/** Creates, changes and deletes events through one replica, over its restarts. */
export class Writer {
  isPaused = false
  readonly #options: WriterOptions
  readonly #recent: { readonly namespace: string; readonly name: string }[] = []
  #client: EventClient | undefined
  #count = 0

  constructor(options: WriterOptions) {
    this.#options = options
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (!this.isPaused) await this.#write()
        await pause(this.#options.everyMs, signal)
      } catch {
        // The replica was killed, or does not have the event that is to be changed.
        this.#drop()
        await pause(RETRY_MS, signal)
      }
    }
    this.#drop()
  }

  async #write(): Promise<void> {
    const { replicas, replica, random, judge } = this.#options
    this.#client ??= await replicas.client(replica)
    const known = this.#recent[random.below(RECENT_MAX)]
    if (known === undefined || random.chance(0.8)) return this.#create(this.#client)
    if (random.chance(0.3)) {
      judge.clientDeletes(`${known.namespace}/${known.name}`)
      return ignoringMissing(this.#client.delete(known.namespace, known.name))
    }
    const series = { count: 2 + random.below(100), lastObservedTime: this.#timeText() }
    const patch = { type: 'merge-patch', patch: { series } } as const
    return ignoringMissing(this.#client.patch(known.namespace, known.name, patch))
  }

  async #create(client: EventClient): Promise<void> {
    const { random, replica } = this.#options
    const namespace = random.pick(NAMESPACES)
    const name = `e-${replica}-${this.#count++}`
    const type = namespace === 'alarms' || random.chance(0.3) ? 'Warning' : 'Normal'
    const note = namespace === 'fat' ? 'x'.repeat(100 + random.below(900)) : 'short'
    const reason = random.pick(REASONS)
    await client.create(
      makeEvent(namespace, name, { type, reason, note, eventTime: this.#timeText() }),
    )
    this.#recent[this.#count % RECENT_MAX] = { namespace, name }
  }

  /** Events are not created in the order in which they were seen. */
  #timeText(): string {
    const ms = Date.now() - this.#options.random.below(SEEN_AGO_MS_MAX)
    return new Date(ms).toISOString().replace('Z', '000Z')
  }

  #drop(): void {
    this.#client?.[Symbol.dispose]()
    this.#client = undefined
  }
}

async function ignoringMissing(request: Promise<unknown>): Promise<void> {
  await request.catch((error: { readonly status?: number }) => {
    if (error.status !== 404) throw error
  })
}
