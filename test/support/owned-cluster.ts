import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { MemoryOwners } from '../../src/mirror/memory-owners.fixture.ts'
import { OWNED_RESOURCES, type OwnedObject } from '../../src/mirror/owners-origin.ts'
import { CertificateAuthority } from './certs.ts'
import { ADMIN_TOKEN, Replicas } from './replicas.ts'
import type { Tidings } from './tidings.ts'

/**
 * A cluster for a mirror that reads owners: a real server has the events, and Pods, ReplicaSets and
 * Jobs are in the memory of the test. All are served by one HTTPS port.
 */
export class OwnedCluster implements AsyncDisposable {
  readonly kubeconfig: string
  readonly #authority: string
  readonly #server: https.Server
  readonly #events: Replicas
  readonly #owners = new MemoryOwners()

  static async start(): Promise<OwnedCluster> {
    const authority = await CertificateAuthority.create('owned')
    const { cert, key } = await authority.issueServer()
    const events = await Replicas.start(1)
    const server = https.createServer({ cert, key })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new OwnedCluster(server, String(authority.cert), events)
  }

  private constructor(server: https.Server, authority: string, events: Replicas) {
    this.#server = server
    this.#authority = authority
    this.#events = events
    this.kubeconfig = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'owned',
      contexts: [{ name: 'owned', context: { cluster: 'owned', user: 'admin' } }],
      clusters: [
        {
          name: 'owned',
          cluster: {
            server: `https://127.0.0.1:${this.#port}`,
            'certificate-authority-data': Buffer.from(authority).toString('base64'),
          },
        },
      ],
      users: [{ name: 'admin', user: { token: ADMIN_TOKEN } }],
    })
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#serve(request, response).catch(() => response.destroy())
    })
  }

  /** A request of the administrator. */
  async ask(
    method: string,
    path: string,
    { body, headers }: { readonly body?: object; readonly headers?: Record<string, string> } = {},
  ): Promise<{ readonly status: number; readonly body: string }> {
    const request = https.request({
      host: '127.0.0.1',
      port: this.#port,
      ca: this.#authority,
      agent: false,
      method,
      path,
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        'content-type': 'application/json',
        ...headers,
      },
    })
    request.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = await once(request, 'response')
    return { status: response.statusCode, body: await textOf(response) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await this.#events[Symbol.asyncDispose]()
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'https://owned')
    const resource = OWNED_RESOURCES.find(({ group, resource: name }) =>
      new RegExp(`^${group}(/namespaces/shop)?/${name}$`).test(url.pathname),
    )
    if (resource === undefined) return passOn(request, response, this.#events.server(0))
    if (request.method === 'POST') {
      this.#put(resource.resource, JSON.parse(await textOf(request)))
      response.writeHead(201).end('{}')
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    using ending = new Ending(response)
    const options = { namespace: undefined, signal: ending.signal }
    const from = url.searchParams.get('resourceVersion') ?? ''
    if (!url.searchParams.has('watch')) {
      const page = { ...options, limit: Number.POSITIVE_INFINITY, continueToken: undefined }
      const { items, resourceVersion } = await this.#owners.listPage(resource, page)
      const list = { metadata: { resourceVersion }, items: items.map(metadataOf) }
      response.end(JSON.stringify(list))
      return
    }
    response.flushHeaders()
    for await (const change of this.#owners.watch(resource, { ...options, from })) {
      if (change.type === 'put') {
        response.write(`${JSON.stringify({ type: 'ADDED', object: metadataOf(change) })}\n`)
      }
    }
  }

  #put(resource: string, { metadata }: Posted): void {
    const [owner] = metadata.ownerReferences
    const named = owner && `${owner.kind}/${owner.name}`
    this.#owners.put(`${resource}/shop/${metadata.name}`, named)
  }
}

interface Posted {
  readonly metadata: {
    readonly name: string
    readonly ownerReferences: readonly { readonly kind: string; readonly name: string }[]
  }
}

function metadataOf({ namespace, name, resourceVersion, owner }: OwnedObject): object {
  const ownerReferences = owner === undefined ? [] : [{ ...owner, controller: true }]
  return { metadata: { namespace, name, resourceVersion, ownerReferences } }
}

/** Aborts when the client has gone. */
class Ending implements Disposable {
  readonly #controller = new AbortController()
  readonly signal: AbortSignal = this.#controller.signal

  constructor(response: ServerResponse) {
    response.once('close', () => this.#controller.abort())
  }

  [Symbol.dispose](): void {
    this.#controller.abort()
  }
}

/** Sends the same request to that server, and its response to the client. */
async function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  { port, ca }: Tidings,
): Promise<void> {
  const { method, url: path, headers } = request
  const passed = https.request({ host: '127.0.0.1', port, ca, agent: false, method, path, headers })
  response.once('close', () => passed.destroy())
  passed.on('error', () => response.destroy())
  request.pipe(passed)
  const [received] = (await once(passed, 'response')) as [IncomingMessage]
  response.writeHead(received.statusCode ?? 500, received.headers)
  response.flushHeaders()
  received.on('error', () => response.destroy())
  received.pipe(response)
}

async function textOf(message: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
