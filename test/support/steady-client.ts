import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventClient } from './event-client.ts'
import type { Tidings } from './tidings.ts'

type Verb = 'get' | 'create' | 'list'
export type Latencies = Readonly<Record<Verb, number[]>>

const PAUSE_MS = 10
const NAMESPACE = 'steady'

/** A client that gets, creates and lists events of a namespace over HTTP/2, one after the other. */
export class SteadyClient implements Disposable {
  static readonly verbs: readonly Verb[] = ['get', 'create', 'list']
  readonly #client: EventClient
  #number = 0

  static async connect({ port, ca }: Tidings): Promise<SteadyClient> {
    const client = new SteadyClient(await EventClient.open({ port, ca, token: 'root' }))
    for (let n = 0; n < 100; n++) await client.#create()
    return client
  }

  private constructor(client: EventClient) {
    this.#client = client
  }

  record(): Latencies {
    return { get: [], create: [], list: [] }
  }

  /** Sends requests for `ms` milliseconds and adds their latencies to `into`. */
  async run(ms: number, into?: Latencies): Promise<void> {
    const endsAt = performance.now() + ms
    const verbs = { get: this.#get, create: this.#create, list: this.#list }
    while (performance.now() < endsAt) {
      for (const verb of SteadyClient.verbs) {
        const startedAt = performance.now()
        await verbs[verb]()
        into?.[verb].push(performance.now() - startedAt)
        await sleep(PAUSE_MS)
      }
    }
  }

  [Symbol.dispose](): void {
    this.#client[Symbol.dispose]()
  }

  readonly #get = (): Promise<void> => this.#ask(`/e${this.#number}`)

  readonly #list = (): Promise<void> => this.#ask('?limit=100')

  readonly #create = (): Promise<void> => {
    const name = `e${++this.#number}`
    return this.#ask('', {
      metadata: { name, namespace: NAMESPACE },
      involvedObject: { kind: 'Pod', name: 'web-0', namespace: NAMESPACE },
      reason: 'Pulled',
      message: 'Successfully pulled image',
      type: 'Normal',
    })
  }

  async #ask(path: string, body?: object): Promise<void> {
    const { status } = await this.#client.request({
      method: body === undefined ? 'GET' : 'POST',
      path: `/api/v1/namespaces/${NAMESPACE}/events${path}`,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (status >= 300) throw new Error(`${path}: status ${status}`)
  }
}

/** Runs `work`, and the processes that it starts, on one processor. */
export async function pinned<Result>(
  processor: number,
  work: () => Promise<Result>,
): Promise<Result> {
  setProcessors(String(processor))
  try {
    return await work()
  } finally {
    setProcessors('0-1023')
  }
}

function setProcessors(list: string): void {
  execFileSync('taskset', ['-a', '-c', '-p', list, String(process.pid)], { stdio: 'ignore' })
}
