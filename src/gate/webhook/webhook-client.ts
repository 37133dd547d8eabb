import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { follow, type OnLook } from '../../lib/files/follow.ts'
import { isObject, type Json, type JsonObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { FairSlots, type Slot } from '../limits/fair-slots.ts'
import { loadKubeconfig, type WebhookServer } from './kubeconfig.ts'

/** A review has a few KiB; a longer response is not a review. */
const RESPONSE_BYTES_MAX = 1024 * 1024
/** Also the limit of requests in flight. */
const SOCKETS_MAX = 32
const IDLE_SOCKETS_MAX = 8
const IDLE_MS = 60_000
/** Requests that may wait for a socket. Another one fails at once, since it would only time out. */
const WAITING_MAX = 256
/** After a change of the file, requests in flight have this long to end on the old connections. */
const DRAIN_MS = 60_000

/** A request to a webhook failed. The message has nothing of the request. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
}

export interface WebhookClientOptions {
  readonly log: Log
  readonly onLook?: OnLook | undefined
}

export interface PostOptions {
  /** From the request to the end of the response. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** The user or network that causes the request. Sockets are shared fairly among these. */
  readonly sharer: string
}

/**
 * Sends requests to the server of a kubeconfig, over keep-alive connections. The file and those
 * that it names are polled once a second; while new ones cannot be used, the old ones stay.
 */
export class WebhookClient {
  #server: WebhookServer
  #agent: https.Agent
  readonly #slots = new FairSlots({
    limit: SOCKETS_MAX,
    waitingMax: WAITING_MAX,
    // The timeout of the request is shorter.
    waitMs: () => DRAIN_MS,
  })
  readonly #follower: { stop(): void }

  /** Rejects if the file cannot be used; the error has file and field. */
  static async open(path: string, options: WebhookClientOptions): Promise<WebhookClient> {
    return new WebhookClient(path, await loadKubeconfig(path), options)
  }

  private constructor(path: string, server: WebhookServer, { log, onLook }: WebhookClientOptions) {
    this.#server = server
    this.#agent = agentFor(server)
    this.#follower = follow({
      inUse: server,
      load: (current) => loadKubeconfig(path, current),
      onChange: (found) => {
        const old = this.#agent
        setTimeout(() => old.destroy(), DRAIN_MS).unref()
        this.#server = found
        this.#agent = agentFor(found)
        log.info('Webhook configuration reloaded', { file: path })
      },
      onProblem: (err) => log.warn('Webhook configuration not reloaded', { err }),
      onMended: () => log.info('Webhook configuration valid again, unchanged', { file: path }),
      onLook,
    })
  }

  /** PEM: the client certificate, and the authorities of the webhook. */
  get certificates(): string {
    return `${this.#server.ca ?? ''}\n${this.#server.clientCertificate?.cert ?? ''}`
  }

  /** Rejects with a WebhookError unless the response is a JSON object, in time, with status 2xx. */
  async post(body: object, options: PostOptions): Promise<JsonObject> {
    const { signal: given, timeoutMs, sharer } = options
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timeoutMs)
    const signal = given === undefined ? late.signal : AbortSignal.any([given, late.signal])
    try {
      using _slot = await this.#enter(sharer, signal)
      return await this.#send(JSON.stringify(body), signal)
    } catch (cause) {
      if (cause instanceof WebhookError) throw cause
      if (late.signal.aborted) throw new WebhookError(`no response within ${timeoutMs} ms`)
      throw new WebhookError('the request to the webhook failed', { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  async #enter(user: string, signal: AbortSignal): Promise<Slot> {
    const wanted = { user, width: 1 }
    const slot = this.#slots.tryEnter(wanted) ?? (await this.#slots.wait(wanted, signal))
    if (typeof slot === 'string') throw new WebhookError('too many requests in flight')
    return slot
  }

  stop(): void {
    this.#follower.stop()
    this.#agent.destroy()
  }

  async #send(body: string, signal: AbortSignal): Promise<JsonObject> {
    const request = this.#request(body, signal)
    try {
      return await resultOf(request)
    } catch (error) {
      // The server may have just closed an idle connection. A review changes nothing: retry it.
      if (!request.reusedSocket || !isReset(error)) throw error
      return resultOf(this.#request(body, signal))
    } finally {
      request.destroy()
    }
  }

  #request(body: string, signal: AbortSignal): ReturnType<typeof https.request> {
    const { url, token } = this.#server
    const request = https.request(url, {
      method: 'POST',
      agent: this.#agent,
      signal,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'tidings',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
    })
    request.end(body)
    return request
  }
}

async function resultOf(request: ReturnType<typeof https.request>): Promise<JsonObject> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { statusCode = 0 } = response
  const text = await textOf(response)
  if (statusCode < 200 || statusCode > 299) {
    throw new WebhookError(`the webhook responded with status ${statusCode}`)
  }
  const result = parsed(text)
  if (!isObject(result)) throw new WebhookError('the response of the webhook is not a JSON object')
  return result
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > RESPONSE_BYTES_MAX)
      throw new WebhookError('the response of the webhook is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    // The caller reports it: undefined is not an object either.
    return undefined
  }
}

function isReset(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ECONNRESET' || code === 'EPIPE'
}

function agentFor({ ca, clientCertificate, serverName }: WebhookServer): https.Agent {
  return new https.Agent({
    keepAlive: true,
    maxSockets: SOCKETS_MAX,
    maxFreeSockets: IDLE_SOCKETS_MAX,
    timeout: IDLE_MS,
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    ...clientCertificate,
  })
}
