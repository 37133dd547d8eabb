import type { AnswerForm } from '../codec/answer-form.ts'
import type { ShownEvent } from '../codec/event-bytes.ts'
import type { Response } from '../http/exchange.ts'
import { warningHeader } from './warnings.ts'

/** One event as the body of an answer. */
export function eventResponse(
  status: number,
  form: AnswerForm,
  event: ShownEvent,
  warnings: readonly string[] = [],
): Response {
  const warning = warningHeader(warnings)
  return {
    status,
    headers:
      warning === undefined
        ? { 'content-type': form.contentType }
        : { 'content-type': form.contentType, warning },
    body: form.one(event),
  }
}
