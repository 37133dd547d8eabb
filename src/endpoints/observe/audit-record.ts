import { type StatusError, timedOut } from '../../api/status.ts'
import type { AuditedBodies, AuditTrail } from '../../gate/audit/auditor.ts'
import type { Chunk, Request, Response } from '../../http/exchange.ts'
import { ExchangeError, isStream } from '../../http/exchange.ts'
import {
  type LoggedBody,
  loggedBody,
  type ObservedRequest,
  ObservedStream,
  observeBody,
} from './audit-bodies.ts'

/** The name of an object is within this many bytes of the start of a response. */
const NAME_WITHIN = 512
/** The name is the first member of the metadata, or follows the version. */
const NAME = /"metadata":\s*\{\s*(?:"resourceVersion":\s*"\d+",\s*)?"name":\s*"([a-z0-9.-]+)"/
const CREATED = 201

export interface Failure {
  readonly error: StatusError
  /** Whether the error is unexpected, which is a bug. */
  readonly isPanic: boolean
}

/** Follows one request through its handler, and feeds its audit trail. */
export class AuditRecord {
  readonly trail: AuditTrail
  readonly #request: Request
  #observed: ObservedRequest | undefined
  /** A copy, since the request drops its headers before a stream ends. */
  #contentType: string | undefined
  #omitsBodies = false

  constructor(trail: AuditTrail, request: Request) {
    this.trail = trail
    this.#request = request
  }

  /** Called before the handler when the bodies must not be logged, whatever the policy says. */
  omitBodies(): void {
    this.#omitsBodies = true
  }

  /** Returns the request for the handler, after the gate has admitted it. */
  request(): Request {
    if (!this.#logsBodies) return this.#request
    this.#observed = observeBody(this.#request)
    this.#contentType = this.#request.headers['content-type']
    return this.#observed.request
  }

  /** Records the response, and returns it once it may be sent. */
  async complete(response: Response, failure?: Failure): Promise<Response> {
    const { trail } = this
    if (!trail.isRecorded) return response
    if (isLate(this.#request)) {
      const error = timedOut({})
      trail.ended({ code: error.code, error })
      return response
    }
    const { body } = response
    if (response.longRunning === true) {
      trail.started(response.status)
      await trail.written()
      return this.#endingLater(response, () => undefined)
    }
    if (!isStream(body)) {
      this.#end(response, body, failure)
      await trail.written()
      return response
    }
    if (!trail.logsResponseBody) return this.#endingLater(response, () => undefined)
    const stream = new ObservedStream()
    const observed = { ...response, body: stream.of(body) }
    return this.#endingLater(observed, () => stream.bytes())
  }

  get #logsBodies(): boolean {
    return this.trail.logsRequestBody && !this.#omitsBodies
  }

  #endingLater(response: Response, bytes: () => Chunk | undefined): Response {
    return {
      ...response,
      onEnd: (sent) => {
        response.onEnd?.(sent)
        // The response may have been replaced by another one, so the status that was sent counts.
        const status = sent.status === 0 ? response.status : sent.status
        this.#end({ ...response, status }, bytes(), undefined)
      },
    }
  }

  #end(response: Response, body: Chunk | undefined, failure: Failure | undefined): void {
    const { trail } = this
    trail.ended({
      code: response.status,
      error: failure?.error,
      isPanic: failure?.isPanic === true,
      createdName: response.status === CREATED ? nameIn(body) : undefined,
      bodies: this.#logsBodies ? this.#bodies(response, body) : undefined,
    })
  }

  #bodies(response: Response, body: Chunk | undefined): AuditedBodies {
    const { logsManagedFields, logsResponseBody } = this.trail
    const sent = this.#observed?.bytes()
    const request =
      sent === undefined
        ? undefined
        : loggedBody(sent, {
            contentType: this.#contentType,
            logsManagedFields,
          })
    const returned =
      logsResponseBody && body !== undefined
        ? loggedResponse(response, body, logsManagedFields)
        : undefined
    return {
      request: request === 'too-long' ? undefined : request,
      response: returned === 'too-long' ? undefined : returned,
      isTruncated: request === 'too-long' || returned === 'too-long',
    }
  }
}

function loggedResponse(
  { headers }: Response,
  body: Chunk,
  logsManagedFields: boolean,
): LoggedBody {
  const isEncoded = headers['content-encoding'] !== undefined
  return loggedBody(body, { contentType: headers['content-type'], logsManagedFields, isEncoded })
}

/** Finds the name of a created object, which may have been generated. */
function nameIn(body: Chunk | undefined): string | undefined {
  if (body === undefined) return undefined
  const start =
    typeof body === 'string'
      ? body.slice(0, NAME_WITHIN)
      : Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, NAME_WITHIN)).toString(
          'latin1',
        )
  return NAME.exec(start)?.[1]
}

/** Returns whether the client got the response for a timeout instead. */
function isLate({ signal }: Request): boolean {
  return (
    signal.aborted && signal.reason instanceof ExchangeError && signal.reason.kind === 'timeout'
  )
}
