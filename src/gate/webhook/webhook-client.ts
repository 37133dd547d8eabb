import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { follow, type OnLook } from '../../lib/follow.ts'
import { isObject, type Json, type JsonObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { FairPlaces, type Place } from '../limits/fair-places.ts'
import { loadKubeconfig, type WebhookServer } from './kubeconfig.ts'

/** A review is a page; an answer beyond this is no review. */
const ANSWER_BYTES_MAX = 1024 * 1024
/** Also how many questions are under way at a time. */
const SOCKETS_MAX = 32
const IDLE_SOCKETS_MAX = 8
const IDLE_MS = 60_000
/** Questions that may wait for that. One more is refused at once: it would only wait. */
const WAITING_MAX = 256
/** When the file changed, questions under way have this long to end on the old connections. */
const FAREWELL_MS = 60_000

/** A webhook gave no answer that can be used. Says nothing of what was asked. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
}

export interface WebhookClientOptions {
  readonly log: Log
  readonly onLook?: OnLook | undefined
}

export interface PostOptions {
  /** From the question to the end of the answer. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** On whose behalf it is asked: those who ask much take turns with those who ask little. */
  readonly sharer: string
}

/**
 * Puts questions to the server of a kubeconfig, over connections that are kept. The file and those
 * it names are looked at once a second; while new ones cannot be used, the old ones stay.
 */
export class WebhookClient {
  #server: WebhookServer
  #agent: https.Agent
  readonly #places = new FairPlaces({
    limit: SOCKETS_MAX,
    waitingMax: WAITING_MAX,
    // A question's own time is shorter.
    waitMs: () => FAREWELL_MS,
  })
  readonly #follower: { stop(): void }

  /** Rejects, naming file and field, if the file cannot be used. */
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
        setTimeout(() => old.destroy(), FAREWELL_MS).unref()
        this.#server = found
        this.#agent = agentFor(found)
        log.info('Webhook configuration reloaded', { file: path })
      },
      onProblem: (err) => log.warn('Webhook configuration not reloaded', { err }),
      onMended: () => log.info('Webhook configuration in use again, as it was', { file: path }),
      onLook,
    })
  }

  /** PEM: what is shown to the webhook, and who may vouch for it. */
  get certificates(): string {
    return `${this.#server.ca ?? ''}\n${this.#server.clientCertificate?.cert ?? ''}`
  }

  /** Rejects with a WebhookError unless a JSON object comes back in time, with a status of 2xx. */
  async post(body: object, options: PostOptions): Promise<JsonObject> {
    const { signal: given, timeoutMs, sharer } = options
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timeoutMs)
    const signal = given === undefined ? late.signal : AbortSignal.any([given, late.signal])
    try {
      using _place = await this.#enter(sharer, signal)
      return await this.#ask(JSON.stringify(body), signal)
    } catch (cause) {
      if (cause instanceof WebhookError) throw cause
      if (late.signal.aborted) throw new WebhookError(`no answer within ${timeoutMs} ms`)
      throw new WebhookError('the webhook cannot be asked', { cause })
    } finally {
      clearTimeout(timer)
    }
  }

  async #enter(user: string, signal: AbortSignal): Promise<Place> {
    const entering = { user, width: 1 }
    const place = this.#places.tryEnter(entering) ?? (await this.#places.wait(entering, signal))
    if (typeof place === 'string') throw new WebhookError('too many questions under way')
    return place
  }

  stop(): void {
    this.#follower.stop()
    this.#agent.destroy()
  }

  async #ask(body: string, signal: AbortSignal): Promise<JsonObject> {
    const request = this.#request(body, signal)
    try {
      return await answerOf(request)
    } catch (error) {
      // A kept connection may have been closed under us; asking twice does no harm.
      if (!request.reusedSocket || !isReset(error)) throw error
      return answerOf(this.#request(body, signal))
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

async function answerOf(request: ReturnType<typeof https.request>): Promise<JsonObject> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { statusCode = 0 } = response
  const text = await textOf(response)
  if (statusCode < 200 || statusCode > 299) {
    throw new WebhookError(`the webhook answered with status ${statusCode}`)
  }
  const answer = parsed(text)
  if (!isObject(answer))
    throw new WebhookError('the webhook answered with something else than JSON')
  return answer
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > ANSWER_BYTES_MAX) throw new WebhookError('the answer of the webhook is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    // Told by whoever asked: it is no object either.
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
