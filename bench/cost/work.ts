import type { LoadOutcome } from '../support/h2load.ts'
import { event, secondsOf } from '../support/request-costs.ts'
import type { Side, TidingsSide } from './sides.ts'
import type { Sample } from './turns.ts'

/** A kind of work, for any of the servers. */
export interface Work {
  readonly name: string
  /** CPU time beside the bare server, at most. */
  readonly ratioMax?: number
  /** Whether one request follows the other, so that latency says something. */
  readonly isSequential?: boolean
  /** Whether a Kubernetes API server takes its turn, too: it needs minutes for the others. */
  readonly isComparable?: boolean
  /** How many units one `load` has. */
  readonly units: number
  measure(side: Side): Promise<Sample>
  load(side: Side): Promise<LoadOutcome>
}

/** A request of the Event API. */
export interface ApiRequest {
  readonly path: string
  readonly body?: Buffer
}

export const ONE = { connections: 1, streams: 1 } as const

export function eventsPath(namespace: string): string {
  return `/apis/events.k8s.io/v1/namespaces/${namespace}/events`
}

export function createIn(namespace: string): Required<ApiRequest> {
  const body = Buffer.from(JSON.stringify(event(0, namespace)))
  return { path: eventsPath(namespace), body }
}

/** CPU seconds that the server took meanwhile. */
export async function cpuOf<T>(
  side: Side,
  run: () => Promise<T>,
): Promise<{ readonly seconds: number; readonly result: T }> {
  const before = secondsOf(side)
  const result = await run()
  return { seconds: secondsOf(side) - before, result }
}

/** The size of the response, so that the bare server can send as much. */
export async function responseBytes(
  { server, headers }: TidingsSide,
  { path, body }: ApiRequest,
): Promise<number> {
  const sent = body === undefined ? {} : { method: 'POST', body: body.toString() }
  const response = await server.ask(path, { headers, ...sent })
  if (response.status >= 300) throw new Error(`${path}: ${response.status} ${response.body}`)
  return Buffer.byteLength(response.body)
}
