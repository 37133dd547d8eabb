/** Compares the simulated member with a real one: every reply, and every message of watches. */
import { Random } from '../../../support/random.ts'
import type { Release } from '../contract.ts'
import * as statuses from '../status.ts'
import { type ClientStream, FakeWorld } from './fake-world.ts'
import { message, nested } from './messages.ts'
import { normalForm, watchForms } from './normal-form.ts'
import { type Call, Operations } from './operations.ts'
import type { RealMember, RealStream } from './real-member.ts'

const watchTimeoutMs = 20_000
/** The longest time that the simulated etcd takes to send history to a watch. */
const historyMs = 150
const probePeriodMs = 20
/** Operations between comparisons of watches: etcd merges revisions when its queue is full. */
const settlePeriod = 50
/** The request for progress. */
const progressRequest = nested(3, Buffer.alloc(0))
/** A range from b to a, which etcd refuses at once. */
const refusedWatch = nested(1, message([1, 'b'], [2, 'a']))
const streamsMax = 4
const recentMax = 12

/** With which etcd refuses a branch of a transaction before it executes anything. */
const branchRefusals = [statuses.compacted, statuses.futureRevision, statuses.leaseNotFound].map(
  (status) => JSON.stringify(status),
)

/**
 * A difference between releases that tidings cannot notice: of several reasons to refuse a transaction,
 * etcd 3.5 reports one of a put first, and 3.6 the first in the order of its operations. tidings reads at
 * an earlier revision outside of transactions only.
 */
function isKnown(path: string, forms: readonly string[]): boolean {
  return path === 'KV/Txn' && forms.every((form) => branchRefusals.includes(form))
}

interface StreamPair {
  readonly real: RealStream
  readonly simulated: ClientStream
  readonly requests: string[]
}

export class Differential {
  readonly #real: RealMember
  readonly #world: FakeWorld
  readonly #random: Random
  readonly #operations: Operations
  readonly #recent: string[] = []
  #streams: StreamPair[] = []

  constructor(real: RealMember, { seed, release }: { seed: number; release: Release }) {
    this.#real = real
    this.#random = new Random(seed)
    const world = new FakeWorld({ size: 1, seed, release })
    this.#world = world
    const position = {
      get revision() {
        return world.cluster.revision
      },
      get compacted() {
        return world.cluster.compactedRevision
      },
    }
    this.#operations = new Operations(this.#random.fork(), position)
  }

  /** Throws at the first difference. */
  async run(count: number): Promise<void> {
    this.#world.elect()
    for (let index = 0; index < count; index++) {
      if (index % settlePeriod === 0) await this.#settle()
      await this.#step()
    }
    await this.#settle()
    for (const { real } of this.#streams) real.close()
  }

  async #step(): Promise<void> {
    const kind = this.#random.below(1_000)
    if (kind < 6) await this.#compact()
    else if (kind < 16) await this.#watch(false)
    else if (kind < 19) await this.#watch(true)
    else if (kind < 35) await this.#progress()
    else if (kind < 39) await this.#settle()
    else await this.#compare(this.#operations.next())
  }

  async #compare(call: Call): Promise<void> {
    this.#note(call.text)
    const real = await this.#real.call(call.path, call.request)
    const simulated = this.#world.call(0, call.path, call.request)
    const [theirs, ours] = [normalForm(call.path, real), normalForm(call.path, simulated)]
    if (theirs !== ours && !isKnown(call.path, [theirs, ours])) {
      this.#fail(`reply to ${call.path}`, theirs, ours)
    }
  }

  /** After the watchers have everything: what they still need must not depend on the time. */
  async #compact(): Promise<void> {
    await this.#settle()
    await this.#compare(this.#operations.compaction())
    await this.#settle()
  }

  async #watch(isPast: boolean): Promise<void> {
    if (this.#streams.length >= streamsMax) {
      await this.#settle()
      const [closed] = this.#streams.splice(this.#random.below(this.#streams.length), 1)
      closed?.real.close()
      closed?.simulated.input.close()
    }
    if (isPast) await this.#settle()
    const request = this.#operations.watch(isPast)
    this.#note(`watch ${request.toString('base64')}`)
    const pair = {
      real: this.#real.watch(),
      simulated: this.#world.watch(0, Buffer.alloc(0)),
      requests: [],
    }
    this.#streams.push(pair)
    this.#write(pair, request)
    if (isPast) {
      this.#world.advance(historyMs)
      // Even with nothing to send, it counts as up to date only then.
      await this.#settle()
      await this.#readHistory()
    }
    await this.#settle()
  }

  /**
   * Waits until the real member has read the history for all its watches. It reads for all at once:
   * when the newest watch is up to date, so are the others.
   */
  async #readHistory(): Promise<void> {
    const stream = this.#real.watch()
    const start = Math.max(1, this.#world.cluster.revision)
    stream.write(nested(1, message([1, 'a'], [3, start])))
    const deadline = performance.now() + watchTimeoutMs
    // The first message says that it was created.
    while (stream.messages.length < 2 && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, probePeriodMs))
      stream.write(progressRequest)
    }
    stream.close()
  }

  /** Etcd may have nothing to reply, which is known once it replies to the next request. */
  async #progress(): Promise<void> {
    await this.#settle()
    const pair = this.#streams[this.#random.below(this.#streams.length)]
    if (pair === undefined) return
    this.#note('progress')
    this.#write(pair, progressRequest)
    this.#write(pair, refusedWatch)
    await this.#settle()
  }

  #write(pair: StreamPair, request: Buffer): void {
    pair.requests.push(request.toString('base64'))
    pair.real.write(request)
    pair.simulated.input.receive(request)
  }

  /** Waits until the real watches have sent as much as the simulated ones, and compares it. */
  async #settle(): Promise<void> {
    const deadline = performance.now() + watchTimeoutMs
    for (const { real, simulated, requests } of this.#streams) {
      const { messages } = simulated
      while (real.messages.length < messages.length && performance.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      const [theirs, ours] = [watchForms(real.messages), watchForms(messages)]
      const index = theirs.findIndex((form, position) => form !== ours[position])
      if (index >= 0 || theirs.length !== ours.length) {
        const at = index >= 0 ? index : Math.min(theirs.length, ours.length)
        const what = `watch message, requests ${requests.join(' ')}`
        this.#fail(what, theirs[at] ?? 'nothing', ours[at] ?? 'nothing')
      }
      real.messages.length = 0
      messages.length = 0
    }
  }

  #note(text: string): void {
    this.#recent.push(text.slice(0, 1_000))
    if (this.#recent.length > recentMax) this.#recent.shift()
  }

  #fail(what: string, theirs: string, ours: string): never {
    const recent = this.#recent.map((text) => `  ${text}`).join('\n')
    throw new Error(
      `${what} at revision ${this.#world.cluster.revision}\n etcd:       ${theirs}\n simulation: ${ours}\nlast:\n${recent}`,
    )
  }
}
