/** The loads of benchmarks that compare CPU time per request, and how it is measured. */
import { readdirSync, readFileSync } from 'node:fs'
import { EventClient } from '../../test/support/event-client.ts'
import { inParallel } from '../../test/support/load.ts'
import type { Tidings } from '../../test/support/tidings.ts'
import { benchEvent, objectOf } from '../memory/events.ts'
import { loadRate } from './h2load.ts'

export const LISTED = 2000
const NAMESPACE = 'listed'
/** 64 requests in flight. */
const MANY = { connections: 4, streams: 16 }

export interface RequestLoad {
  readonly requests: number
  run(headers?: Readonly<Record<string, string>>): Promise<unknown>
}

/** Fills the server; returns its loads by name. */
export async function openLoads(
  server: Tidings,
  token: string,
): Promise<ReadonlyMap<string, RequestLoad>> {
  await server.until('/readyz', ({ status }) => status === 200, 10_000)
  using client = await EventClient.open({ port: server.port, ca: server.ca, token })
  const names: string[] = []
  await inParallel(LISTED, 64, async (n) => {
    names.push((await client.create(event(n, NAMESPACE))).metadata.name)
  })
  const load = (requests: number, path: string, how: object): RequestLoad => ({
    requests,
    run: (headers = {}) =>
      loadRate({
        url: `https://127.0.0.1:${server.port}${path}`,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          ...headers,
        },
        amount: { requests },
        ...MANY,
        ...how,
      }),
  })
  const selected = `${client.path(NAMESPACE)}?fieldSelector=regarding.uid=${objectOf(0).uid}`
  const body = Buffer.from(JSON.stringify(event(0, 'created')))
  return new Map([
    ['get', load(12_000, client.path(NAMESPACE, names[0]), {})],
    ['create', load(6000, client.path('created'), { body })],
    [`list ${LISTED}`, load(150, client.path(NAMESPACE), { connections: 1, streams: 1 })],
    [`list 10 of ${LISTED}`, load(6000, selected, {})],
  ])
}

/** Microseconds of CPU time per request. */
export async function costOf(
  server: Tidings,
  load: RequestLoad | undefined,
  headers?: Readonly<Record<string, string>>,
): Promise<number> {
  if (load === undefined) throw new Error('no such load')
  const before = secondsOf(server)
  await load.run(headers)
  return ((secondsOf(server) - before) * 1e6) / load.requests
}

/** CPU time of the whole process, including its threads for garbage collection and encryption. */
export function secondsOf({
  process: { pid },
}: {
  readonly process: { readonly pid?: number | undefined }
}): number {
  const threads = readdirSync(`/proc/${pid}/task`)
  return threads.reduce((sum, thread) => sum + threadSeconds(`/proc/${pid}/task/${thread}`), 0)
}

/** Exact, unlike the hundredths of a second in `stat`; 0 for a thread that has just ended. */
function threadSeconds(folder: string): number {
  try {
    return Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[0]) / 1e9
  } catch {
    return 0
  }
}

/** Events about an object that has ten of them; without the fields that new events may not have. */
export function event(n: number, namespace: string): Parameters<EventClient['create']>[0] {
  const { deprecatedSource, deprecatedLastTimestamp, deprecatedCount, ...made } = JSON.parse(
    benchEvent(n).body.toString(),
  )
  const regarding = { ...made.regarding, namespace }
  return { ...made, regarding, metadata: { generateName: 'payment-gateway-', namespace } }
}

export function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}
