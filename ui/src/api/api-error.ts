/** Why a request failed, in the words of the server where it has responded. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** The HTTP status; 0 when the server did not respond. */
  readonly code: number
  readonly reason: string
  /** Undefined when the server does not ask for a later retry. */
  readonly retryAfterSeconds: number | undefined

  constructor(options: {
    readonly code: number
    readonly reason: string
    readonly message: string
    readonly retryAfterSeconds?: number | undefined
    readonly cause?: unknown
  }) {
    super(options.message, { cause: options.cause })
    this.code = options.code
    this.reason = options.reason
    this.retryAfterSeconds = options.retryAfterSeconds
  }
}

export function networkError(cause: unknown): ApiError {
  const isTimeout = cause instanceof DOMException && cause.name === 'TimeoutError'
  return new ApiError({
    code: 0,
    reason: isTimeout ? 'Timeout' : 'NoResponse',
    message: isTimeout ? 'The server did not respond in time.' : 'The server cannot be reached.',
    cause,
  })
}

/** Proxies may respond with texts of any length. */
const MESSAGE_MAX = 2_000

/** The error of a response: a Status of the API, or whatever a proxy in between has sent. */
export async function statusError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  const { reason = '', message = '' } = statusOf(text)
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return new ApiError({
    code: response.status,
    reason,
    message: (message || text || `HTTP status ${response.status}`).slice(0, MESSAGE_MAX),
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : undefined,
  })
}

export function statusOf(text: string): { readonly reason?: string; readonly message?: string } {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** Anything else that is thrown is a mistake of the page itself. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError({
    code: 0,
    reason: 'PageError',
    message: `This page failed: ${error instanceof Error ? error.message : String(error)}`,
    cause: error,
  })
}
