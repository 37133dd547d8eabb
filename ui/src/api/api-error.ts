/** Why a request failed, in the server's own words if it responded. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** HTTP status; 0 if the server did not respond. */
  readonly code: number
  readonly reason: string
  /** Undefined if the server did not ask to retry later. */
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

/** Whether the archive failed, whatever the state of etcd. */
export function isOfHistory({ message }: ApiError): boolean {
  return message.includes('history')
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

/** A proxy may respond with a text of any length. */
const MESSAGE_MAX = 2_000

/** Converts an error response: a Status of the API, or whatever a proxy has sent instead. */
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

/** Any other thrown value is a bug in the page. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError({
    code: 0,
    reason: 'PageError',
    message: `This page failed: ${error instanceof Error ? error.message : String(error)}`,
    cause: error,
  })
}
