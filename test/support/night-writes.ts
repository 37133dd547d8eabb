/** The ways in which a recorded night gets into a server: the requests of different clients. */
import assert from 'node:assert/strict'
import type { ApiCall, EventClient, PatchType } from './event-client.ts'
import type { Night, NightEvent } from './recorded-night.ts'
import { asCore, newStyle, oldStyle } from './recorder-styles.ts'

export interface NightWrite {
  readonly atMs: number
  /** Writes of the same event are sent one after the other. */
  readonly event: number
  readonly call: ApiCall
}

/** The requests of a client for one event of the night. */
export type Way = (event: NightEvent, name: string) => readonly Omit<NightWrite, 'event'>[]

/** All requests, in the order of time. `prefix`: the path of a cluster, such as `/clusters/east`. */
export function nightWrites({ events }: Night, way: Way, prefix = ''): readonly NightWrite[] {
  return events
    .flatMap((event, index) =>
      way(event, `${event.about.name}.${(0x18a0c4d2b7e1 + index).toString(16)}`).map(
        ({ atMs, call }) => ({ atMs, event: index, call: { ...call, path: prefix + call.path } }),
      ),
    )
    .sort((one, other) => one.atMs - other.atMs)
}

/** A client that raises the count itself. */
export const mergePatches: Way = (event, name) => byCount(event, name, 'merge-patch')

/** The recorder of core/v1, which sends the note again. */
export const oldRecorder: Way = (event, name) => byCount(event, name, 'strategic-merge-patch')

function byCount(event: NightEvent, name: string, type: PatchType): ReturnType<Way> {
  const [firstMs = 0, ...later] = event.times
  const path = `/api/v1/namespaces/${namespaceOf(event)}/events`
  const created = asCore(oldStyle({ ...event, firstMs }, name, true))
  return [
    { atMs: firstMs, call: create(path, created) },
    ...later.map((atMs, index) => ({
      atMs,
      call: patch(`${path}/${name}`, type, {
        count: index + 2,
        lastTimestamp: `${new Date(atMs).toISOString().slice(0, 19)}Z`,
        ...(type === 'merge-patch' ? {} : { message: event.note }),
      }),
    })),
  ]
}

const MINUTE_MS = 60_000
const REFRESH_MS = 30 * MINUTE_MS
const FINISH_MS = 6 * MINUTE_MS

/**
 * The recorder of events.k8s.io: the second occurrence begins a series at once. What follows is
 * written every half hour, and six minutes after the last. An occurrence after that is a new event.
 */
export const newRecorder: Way = (event, name) =>
  seriesOf(event.times).flatMap((times, index) => series(event, `${name}${index || ''}`, times))

/** Occurrences that are no more than six minutes apart. */
function seriesOf(times: readonly number[]): readonly (readonly number[])[] {
  const all: number[][] = []
  for (const ms of times) {
    const last = all.at(-1)
    if (last === undefined || ms - (last.at(-1) ?? 0) > FINISH_MS) all.push([ms])
    else last.push(ms)
  }
  return all
}

function series(event: NightEvent, name: string, times: readonly number[]): ReturnType<Way> {
  const [firstMs = 0, secondMs, ...later] = times
  const path = `/apis/events.k8s.io/v1/namespaces/${namespaceOf(event)}/events`
  const instance = event.host === undefined ? event.by : `${event.by}-${event.host}`
  const created = newStyle({ ...event, firstMs }, name, { instance })
  const creation = { atMs: firstMs, call: create(path, created) }
  if (secondMs === undefined) return [creation]
  const raise = (atMs: number, count: number) => ({
    atMs,
    call: patch(`${path}/${name}`, 'strategic-merge-patch', {
      series: { count, lastObservedTime: `${new Date(atMs).toISOString().slice(0, 23)}000Z` },
    }),
  })
  const refreshed = later
    .map((atMs, index) => ({ atMs, count: index + 3 }))
    // The last before each refresh, and the last of all.
    .filter(({ atMs }, index) => isRefreshed(atMs, later[index + 1]))
  return [creation, raise(secondMs, 2), ...refreshed.map(({ atMs, count }) => raise(atMs, count))]
}

function isRefreshed(atMs: number, nextMs: number | undefined): boolean {
  if (nextMs === undefined) return true
  return Math.floor(atMs / REFRESH_MS) !== Math.floor(nextMs / REFRESH_MS)
}

function namespaceOf({ about: { namespace } }: NightEvent): string {
  return namespace === '' ? 'default' : namespace
}

function create(path: string, event: object): ApiCall {
  return {
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(event),
  }
}

function patch(path: string, type: PatchType, change: object): ApiCall {
  return {
    method: 'PATCH',
    path,
    headers: { 'content-type': `application/${type}+json` },
    body: JSON.stringify(change),
  }
}

const LANES = 32
/** A server that did not write an event last has to read it first. */
const IN_TURN = 10

/** Sends them as fast as possible, some to each of the servers in turn. */
export async function play(
  writes: readonly NightWrite[],
  clients: readonly Pick<EventClient, 'request'>[],
): Promise<void> {
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    writes.filter(({ event }) => event % LANES === lane),
  )
  await Promise.all(
    lanes.map(async (lane, first) => {
      for (const [index, { call }] of lane.entries()) {
        const client = clients[(first + Math.floor(index / IN_TURN)) % clients.length]
        const answer = await client?.request(call)
        const isRight = answer !== undefined && answer.status < 300
        assert.ok(isRight, `${call.method} ${call.path}: ${answer?.status} ${answer?.body}`)
      }
    }),
  )
}
