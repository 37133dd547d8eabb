/** Other clients, which use the server while it is attacked, and their latency. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Client, openClient } from '../../support/http-client.ts'
import type { Tidings } from '../../support/tidings.ts'
import { LIST } from './attack.ts'
import { event } from './requests.ts'

const PAUSE_MS = 10
const OWN_LIST = LIST.replace('/a/', '/b/')
/** Every so many requests of the user are a write. */
const WRITE_EVERY = 10
const WARM_UP_LOOPS = 4
const TIMEOUT_MS = 10_000

/** What was measured in one period. */
export interface Figures {
  readonly probesMs: readonly number[]
  readonly usersMs: readonly number[]
  readonly failures: number
  readonly peakMib: number
}

/** The p99 latency of several periods together. */
export interface Waits {
  readonly probeMs: number
  readonly userMs: number
  /** The smaller sample count of the two. */
  readonly samples: number
}

/** A user with one kept connection, and a probe that opens a new connection each time. */
export class Bystanders implements AsyncDisposable {
  readonly #server: Tidings
  readonly #client: Client
  readonly #headers: Readonly<Record<string, string>>
  #serial = 0

  static async start(server: Tidings, token: string): Promise<Bystanders> {
    return new Bystanders(server, await openClient('h2', server.port), token)
  }

  static waits(all: readonly Figures[]): Waits {
    const probes = all.flatMap(({ probesMs }) => probesMs)
    const users = all.flatMap(({ usersMs }) => usersMs)
    return {
      probeMs: slowestHundredth(probes),
      userMs: slowestHundredth(users),
      samples: Math.min(probes.length, users.length),
    }
  }

  private constructor(server: Tidings, client: Client, token: string) {
    this.#server = server
    this.#client = client
    this.#headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  }

  async warmUp(requests: number): Promise<void> {
    let left = requests
    const loop = async (): Promise<void> => {
      while (left > 0) {
        left -= 3
        await this.#ask()
        await this.#client.request({ path: LIST, headers: this.#headers })
        await this.#probe()
      }
    }
    await Promise.all(Array.from({ length: WARM_UP_LOOPS }, loop))
  }

  async during(what: () => Promise<void>): Promise<Figures> {
    let isOver = false
    let failures = 0
    let peakMib = 0
    const measure = async (ask: () => Promise<boolean>): Promise<readonly number[]> => {
      const times: number[] = []
      // At least once: without a figure from before, all memory would count as growth.
      do {
        const startedAt = performance.now()
        const isServed = await within(TIMEOUT_MS, ask())
        times.push(performance.now() - startedAt)
        if (!isServed) failures += 1
        peakMib = Math.max(peakMib, residentMib(this.#server))
        await sleep(PAUSE_MS)
      } while (!isOver)
      return times
    }
    const probes = measure(() => this.#probe())
    const users = measure(() => this.#ask())
    try {
      await what()
    } finally {
      isOver = true
    }
    return { probesMs: await probes, usersMs: await users, failures, peakMib }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]()
  }

  /** A short list or, now and then, a new event. */
  async #ask(): Promise<boolean> {
    const headers = this.#headers
    if (++this.#serial % WRITE_EVERY !== 0) {
      const { status } = await this.#client.request({ path: `${OWN_LIST}?limit=1`, headers })
      return status === 200
    }
    const body = JSON.stringify(event({ name: `other-${this.#serial}`, namespace: 'b' }))
    const { status } = await this.#client.request({ method: 'POST', path: OWN_LIST, headers, body })
    return status === 201
  }

  async #probe(): Promise<boolean> {
    return (await this.#server.ask('/readyz')).status === 200
  }
}

async function within(ms: number, asked: Promise<boolean>): Promise<boolean> {
  const late = new AbortController()
  try {
    return await Promise.race([asked, sleep(ms, false, { signal: late.signal }).catch(() => false)])
  } catch {
    return false
  } finally {
    late.abort()
  }
}

function slowestHundredth(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0
}

function residentMib(server: Tidings): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}
