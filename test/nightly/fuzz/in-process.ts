/** The server without its sockets: the real handler over the real storage over a real etcd. */

import { Registry } from '@prometheus-io/client'
import { eventsGroup } from '../../../src/api/event-groups.ts'
import { eventsService, eventsServiceName } from '../../../src/endpoints/events/events-service.ts'
import { serve } from '../../../src/endpoints/serve.ts'
import { Services } from '../../../src/endpoints/services.ts'
import type { Handler, Request, Response } from '../../../src/http/exchange.ts'
import { createLog } from '../../../src/lib/log/log.ts'
import { RunQueue } from '../../../src/lib/run-queue.ts'
import { serverCommand } from '../../../src/options/commands.ts'
import { parseFlags } from '../../../src/options/parse.ts'
import { Engine } from '../../../src/server/engine.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { openTo } from '../../support/open-gate.ts'
import { type Answer, type Ask, STREAM_CHUNKS_MAX, type Target } from './target.ts'

const GROUP = 'events.k8s.io'
const user = { name: 'fuzz', groups: [] }

export class InProcess implements Target, AsyncDisposable {
  readonly #handler: Handler
  readonly #stack: AsyncDisposableStack
  readonly #complaints: string[]

  static async start(): Promise<InProcess> {
    const stack = new AsyncDisposableStack()
    const complaints: string[] = []
    const write = (line: string): void => {
      if (/Request failed|not an event|fatal/.test(line)) complaints.push(line)
    }
    const log = createLog({ format: 'json', verbosity: 0, sink: { write }, pid: 0 })
    const etcd = stack.use(await startEtcd())
    const options = optionsFor(etcd.endpoints)
    const engine = new Engine(options, log, new Registry())
    stack.defer(() => engine.close())
    await engine.open((error) => complaints.push(`fatal: ${error}`))
    await eventually('the engine has synced', () => engine.unsynced === undefined)
    const group = eventsGroup(GROUP)
    const services = new Services([eventsServiceName(group)])
    services.install(
      eventsService({ ...engine.forClients, group, eventBytesMax: options.maxEventBytes }),
    )
    const handler = serve({
      runQueue: new RunQueue(),
      services,
      ...openTo(user),
      log,
      clusterName: 'local',
      isTurningAway: () => false,
    })
    return new InProcess(handler, stack, complaints)
  }

  private constructor(handler: Handler, stack: AsyncDisposableStack, complaints: string[]) {
    this.#handler = handler
    this.#stack = stack
    this.#complaints = complaints
  }

  async ask({ method, target, headers, body }: Ask): Promise<Answer> {
    const controller = new AbortController()
    const [path = '', search = ''] = splitOnce(target)
    const request: Request = {
      method,
      path: path.includes('%') ? decodeURIComponent(path) : path,
      query: new URLSearchParams(search),
      headers: { authorization: 'Bearer fuzz', ...headers },
      peer: { address: '127.0.0.1', isLoopback: true, clientCertificate: () => undefined },
      signal: controller.signal,
      body: async () => body,
    }
    const response = await this.#handler(request)
    const whole = await contentOf(response, controller)
    return { status: response.status, headers: response.headers, body: whole }
  }

  complaints(): readonly string[] {
    return this.#complaints.splice(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

function optionsFor(endpoints: readonly string[]): ConstructorParameters<typeof Engine>[0] {
  const parsed = parseFlags(serverCommand, [`--etcd-servers=${endpoints.join(',')}`])
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed))
  return parsed.options
}

function splitOnce(target: string): readonly string[] {
  const mark = target.indexOf('?')
  return mark === -1 ? [target] : [target.slice(0, mark), target.slice(mark + 1)]
}

async function contentOf({ body, longRunning }: Response, end: AbortController): Promise<Buffer> {
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body)
  const chunks: Buffer[] = []
  // A watch may never send anything.
  const late = longRunning === true ? setTimeout(() => end.abort(), 2) : undefined
  for await (const chunk of body) {
    // A copy, since the buffer of a chunk may be reused.
    chunks.push(Buffer.from(chunk))
    if (longRunning === true && chunks.length === STREAM_CHUNKS_MAX) break
  }
  clearTimeout(late)
  if (longRunning === true) end.abort()
  return Buffer.concat(chunks)
}
