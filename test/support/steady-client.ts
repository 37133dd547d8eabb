import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tidings } from './tidings.ts'

type Verb = 'get' | 'create' | 'list'
export type Latencies = Readonly<Record<Verb, number[]>>

const PAUSE_MS = 10
const NAMESPACE = 'steady'
const AUTHORIZATION = { authorization: 'Bearer root', 'content-type': 'application/json' }

/** A client that gets, creates and lists events of a namespace over HTTP/2, one after the other. */
export class SteadyClient implements AsyncDisposable {
  static readonly verbs: readonly Verb[] = ['get', 'create', 'list']
  readonly #session: ClientHttp2Session
  #number = 0

  static async connect({ port, ca }: Tidings): Promise<SteadyClient> {
    const session = connect(`https://127.0.0.1:${port}`, { ca })
    await once(session, 'connect')
    const client = new SteadyClient(session)
    for (let n = 0; n < 100; n++) await client.#create()
    return client
  }

  private constructor(session: ClientHttp2Session) {
    this.#session = session
  }

  record(): Latencies {
    return { get: [], create: [], list: [] }
  }

  /** For this long; the latencies are added to `into`. */
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.#session.close()
    await once(this.#session, 'close')
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
    const stream = this.#session.request({
      ':method': body === undefined ? 'GET' : 'POST',
      ':path': `/api/v1/namespaces/${NAMESPACE}/events${path}`,
      ...AUTHORIZATION,
    })
    stream.end(body === undefined ? undefined : JSON.stringify(body))
    const [headers] = await once(stream, 'response')
    stream.resume()
    await once(stream, 'end')
    if (headers[':status'] >= 300) throw new Error(`${path}: status ${headers[':status']}`)
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
