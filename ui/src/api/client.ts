/** Sends API requests to the server that this page was loaded from. */
import { warningTexts } from '../model/server/warnings.ts'
import { ApiError, networkError, statusError } from './api-error.ts'
import { clusterOf } from './paths.ts'

export interface Ask {
  readonly parameters?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** A proxy may protect this path separately, so a 401 does not end the session. */
  readonly isAside?: boolean
  /** By default, half a minute. */
  readonly timeoutMs?: number
  /** Called with each `Warning` header text of a successful response. */
  readonly onWarning?: (text: string) => void
}

export interface ClientOptions {
  /** The server's URL, with a trailing slash. */
  readonly base: string
  /** Sent only to the paths that `tokenOf` covers. */
  readonly token: string | undefined
  /** The only cluster that accepts the token. Undefined if the server accepts it on all paths. */
  readonly tokenOf?: string | undefined
  /**
   * The cluster that authenticates the user; others may not know the user. Empty for the default
   * cluster.
   */
  readonly cluster?: string
  /** Aborts all requests. */
  readonly signal?: AbortSignal
  /** Called when that cluster no longer accepts the credentials. */
  readonly onUnauthorized?: () => void
}

/** Responses take longer only if the server or the network hangs. */
const TIMEOUT_MS = 30_000

/** Every request rejects with an ApiError, or with an AbortError when a signal aborts. */
export class ApiClient {
  readonly base: string
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.base = options.base
    this.#options = options
  }

  async get<Result>(path: string, ask: Ask = {}): Promise<Result> {
    return (await this.#send(path, { ...ask, read: readJson })) as Result
  }

  getText(path: string, ask: Ask = {}): Promise<string> {
    const read = (response: Response): Promise<string> => response.text()
    return this.#send(path, { ...ask, accept: 'text/plain', read })
  }

  async post<Result>(path: string, body: object, ask: Ask = {}): Promise<Result> {
    return (await this.#send(path, {
      ...ask,
      body: JSON.stringify(body),
      read: readJson,
    })) as Result
  }

  /** Returns the body of a response that does not end, such as a watch. Has no timeout. */
  stream(path: string, ask: Ask = {}): Promise<ReadableStream<Uint8Array>> {
    const read = async ({ body }: Response): Promise<ReadableStream<Uint8Array>> =>
      body ?? new Blob([]).stream()
    return this.#send(path, { ...ask, isLong: true, read })
  }

  url(path: string, parameters: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams(parameters).toString()
    return `${this.base}${path}${query === '' ? '' : `?${query}`}`
  }

  async #send<Result>(path: string, sent: Sent<Result>): Promise<Result> {
    const { parameters, isLong, timeoutMs = TIMEOUT_MS, onWarning, read } = sent
    const given = [sent.signal, this.#options.signal].filter((one) => one !== undefined)
    const timeout = isLong === true ? [] : [AbortSignal.timeout(timeoutMs)]
    let failure: ApiError
    try {
      // The server indents JSON for browsers, which doubles its size.
      const response = await fetch(this.url(path, { pretty: 'false', ...parameters }), {
        ...this.#initOf(path, sent),
        signal: AbortSignal.any([...given, ...timeout]),
        cache: 'no-store',
        redirect: 'error',
      })
      if (response.ok) {
        if (onWarning) warningTexts(response.headers.get('warning') ?? '').forEach(onWarning)
        return await read(response)
      }
      failure = await statusError(response)
    } catch (error) {
      failure = error instanceof ApiError ? error : networkError(error)
    }
    for (const signal of given) signal.throwIfAborted()
    if (failure.code === 401 && sent.isAside !== true) this.#endSession(path)
    throw failure
  }

  #initOf(path: string, { body, accept = 'application/json' }: Sent<unknown>): RequestInit {
    const { token, tokenOf } = this.#options
    const headers: Record<string, string> = { accept }
    const isMeant = tokenOf === undefined || clusterOf(path) === tokenOf
    if (token !== undefined && isMeant) headers['authorization'] = `Bearer ${token}`
    if (body === undefined) return { headers }
    return { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body }
  }

  #endSession(path: string): void {
    const { cluster = '', onUnauthorized } = this.#options
    if (clusterOf(path) === cluster) onUnauthorized?.()
  }
}

interface Sent<Result> extends Ask {
  readonly body?: string
  readonly accept?: string
  readonly isLong?: boolean
  /** Called for successful responses only. */
  readonly read: (response: Response) => Promise<Result>
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json()
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new ApiError({
      code: 0,
      reason: 'NoJson',
      message: 'The response did not come from the API: a proxy may have sent it.',
      cause: error,
    })
  }
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
