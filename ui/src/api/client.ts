/** Sends requests to the API of the server that this page comes from. */
import { warningTexts } from '../model/server/warnings.ts'
import { type ApiError, networkError, statusError } from './api-error.ts'

export interface Ask {
  readonly parameters?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** A proxy may protect this path in its own way: a 401 does not end the session. */
  readonly isAside?: boolean
  /** Called with each text of the `Warning` header of a response that succeeds. */
  readonly onWarning?: (text: string) => void
}

export interface ClientOptions {
  /** The URL of the server, with a slash at its end. */
  readonly base: string
  readonly token: string | undefined
  /** Called when the server no longer accepts the credentials. */
  readonly onUnauthorized?: (error: ApiError) => void
}

/** A response takes longer only if the server or the network is stuck. */
const TIMEOUT_MS = 30_000

export class ApiClient {
  readonly base: string
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.base = options.base
    this.#options = options
  }

  /** Rejects with an ApiError; with an AbortError when `signal` aborts. */
  async get<Result>(path: string, ask: Ask = {}): Promise<Result> {
    const response = await this.#send(path, { method: 'GET' }, ask)
    return (await readJson(response)) as Result
  }

  async getText(path: string, ask: Ask = {}): Promise<string> {
    return (await this.#send(path, { method: 'GET' }, { ...ask, accept: 'text/plain' })).text()
  }

  async post<Result>(path: string, body: object, ask: Ask = {}): Promise<Result> {
    const sent = { method: 'POST', body: JSON.stringify(body) }
    return (await readJson(await this.#send(path, sent, ask))) as Result
  }

  /** The bytes of a response without an end, such as a watch. Has no time limit. */
  async stream(path: string, ask: Ask = {}): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#send(path, { method: 'GET' }, { ...ask, isLong: true })
    return response.body ?? new Blob([]).stream()
  }

  url(path: string, parameters: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams(parameters).toString()
    return `${this.base}${path}${query === '' ? '' : `?${query}`}`
  }

  async #send(
    path: string,
    init: RequestInit,
    { parameters, signal, isAside, isLong, onWarning, accept = 'application/json' }: SendOptions,
  ): Promise<Response> {
    const { token } = this.#options
    const headers: Record<string, string> = { accept }
    if (token !== undefined) headers['authorization'] = `Bearer ${token}`
    if (init.body !== undefined) headers['content-type'] = 'application/json'
    const signals = [signal, isLong === true ? undefined : AbortSignal.timeout(TIMEOUT_MS)].filter(
      (one) => one !== undefined,
    )
    let response: Response
    try {
      // The server indents what it sends to browsers, which doubles it.
      response = await fetch(this.url(path, { pretty: 'false', ...parameters }), {
        ...init,
        headers,
        signal: AbortSignal.any(signals),
        cache: 'no-store',
        redirect: 'error',
      })
    } catch (error) {
      if (signal?.aborted === true) throw error
      throw networkError(error)
    }
    if (response.ok) {
      if (onWarning) warningTexts(response.headers.get('warning') ?? '').forEach(onWarning)
      return response
    }
    const failure = await statusError(response)
    if (failure.code === 401 && isAside !== true) this.#options.onUnauthorized?.(failure)
    throw failure
  }
}

interface SendOptions extends Ask {
  readonly isLong?: boolean
  readonly accept?: string
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json()
  } catch (error) {
    throw networkError(error)
  }
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
