import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import type { ShownEvent } from '../../codec/event/event-bytes.ts'
import type { Response } from '../../http/exchange.ts'
import { warningHeader } from './warnings.ts'

/** A response with one event. */
export function eventResponse(
  status: number,
  encoder: ResponseEncoder,
  event: ShownEvent,
  warnings: readonly string[] = [],
): Response {
  const warning = warningHeader(warnings)
  return {
    status,
    headers:
      warning === undefined
        ? { 'content-type': encoder.contentType }
        : { 'content-type': encoder.contentType, warning },
    body: encoder.one(event),
  }
}
