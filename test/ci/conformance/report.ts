import { isDeepStrictEqual } from 'node:util'
import { isObject, type Json, type JsonObject, memberOf } from '../../../src/lib/json.ts'
import type { Result } from './play.ts'
import type { Step } from './recording.ts'
import { shown } from './tree-difference.ts'

const DIFFERENCES_SHOWN = 8

/** A failing step for a person to read: the request, then the differences. */
export function describeResult(suite: string, { index, step, wrong }: Result): string {
  const more = wrong.length - DIFFERENCES_SHOWN
  return [
    `${suite}[${index}] ${describeRequest(step)}`,
    ...wrong.slice(0, DIFFERENCES_SHOWN).map((line) => `    ${line}`),
    ...(more > 0 ? [`    and ${more} more`] : []),
  ].join('\n')
}

function describeRequest({ method, path, headers, body, raw }: Step): string {
  const kind = headers?.['content-type'] ?? headers?.['accept']
  return [
    method,
    path.replace(/^\/apis\/[^/]+\/v1\/namespaces\/@\{ns\}/, '…'),
    ...(kind === undefined ? [] : [`(${kind})`]),
    ...(body === undefined ? [] : [describeBody(body)]),
    ...(raw === undefined ? [] : [shown(raw)]),
  ].join(' ')
}

/** Most recorded bodies are the same Event with a few changes: only those are shown. */
function describeBody(body: Json): string {
  if (!isObject(body) || body['reportingController'] === undefined) return shown(body)
  const changed = Object.entries(body).filter(
    ([name, value]) => !isDeepStrictEqual(value, memberOf(USUAL_EVENT, name)),
  )
  const missing = Object.keys(USUAL_EVENT).filter((name) => memberOf(body, name) === undefined)
  return [
    `Event ${shown(Object.fromEntries(changed))}`,
    ...(missing.length === 0 ? [] : [`without ${missing.join(', ')}`]),
  ].join(' ')
}

const USUAL_EVENT: JsonObject = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  eventTime: '2026-01-02T03:04:05.678901Z',
  action: 'Binding',
  reason: 'Scheduled',
  type: 'Normal',
  reportingController: 'example.com/scheduler',
  reportingInstance: 'scheduler-0',
  regarding: { kind: 'Pod', namespace: '@{ns}', name: 'web-0' },
  note: 'Successfully assigned web-0 to node-1',
}

/** One line for a whole suite. */
export function describeSuite(suite: string, results: readonly Result[]): string {
  const { length } = results
  const failed = results.filter(({ wrong }) => wrong.length > 0).length
  return `${failed === 0 ? 'ok  ' : 'FAIL'} ${suite.padEnd(17)} ${length - failed}/${length}`
}
