/**
 * Compares the events that a mirror serves with what an independent observer saw at the origin.
 * Knows nothing of how either was obtained.
 */
import { isDeepStrictEqual } from 'node:util'

export const originVersionAnnotation = 'tidings.dev/origin-resource-version'
const originEpochAnnotation = 'tidings.dev/origin-epoch'

/** An event in core/v1, as JSON. */
export interface CoreEvent {
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly resourceVersion: string
    readonly creationTimestamp: string
    readonly annotations?: Readonly<Record<string, string>>
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

/** What is known of one name at the origin. */
export interface OriginState {
  /** The last state that was written there. */
  readonly last: CoreEvent
  /**
   * How it was deleted after that. `expired`: by its TTL. `deleted`: by a client. `early`: by a
   * client, when it was too young to have expired; a mirror can tell.
   */
  readonly end: 'expired' | 'deleted' | 'early' | undefined
}

export const wrongStates = [
  'missing',
  'duplicated',
  'unknown',
  'older',
  'other version',
  'other uid',
  'other content',
  'not deleted',
] as const
export type WrongState = (typeof wrongStates)[number]

export interface Fault {
  readonly kind: WrongState
  readonly key: string
  readonly detail: string
}

export interface CheckOptions {
  /** What the mirror does with deletes at the origin. */
  readonly deletes: 'never' | 'explicit'
  /** The mirrored namespaces; undefined for all. */
  readonly namespaces?: readonly string[] | undefined
}

/** All differences; none means that the mirror holds the final state of each event. */
export function differences(
  origin: ReadonlyMap<string, OriginState>,
  served: readonly CoreEvent[],
  { deletes, namespaces }: CheckOptions,
): Fault[] {
  const isMirrored = (event: CoreEvent): boolean =>
    namespaces?.includes(event.metadata.namespace) !== false
  const unknown = served
    .filter((event) => !(isMirrored(event) && origin.has(keyOf(event))))
    .map((event): Fault => {
      return { kind: 'unknown', key: keyOf(event), detail: `version ${versionOf(event)}` }
    })
  const found = new Map(served.map((event) => [keyOf(event), event]))
  const states = [...origin]
    .filter(([, { last }]) => isMirrored(last))
    .flatMap(([key, state]) => stateFaults(key, state, found.get(key), deletes))
  return [...duplicates(served), ...unknown, ...states]
}

function duplicates(served: readonly CoreEvent[]): Fault[] {
  const faults: Fault[] = []
  const keys = new Set<string>()
  const keysByUid = new Map<string, string>()
  for (const event of served) {
    const key = keyOf(event)
    const twin = keysByUid.get(event.metadata.uid)
    if (keys.has(key)) faults.push({ kind: 'duplicated', key, detail: 'listed twice' })
    else if (twin !== undefined) {
      faults.push({ kind: 'duplicated', key, detail: `has the uid of ${twin}` })
    }
    keys.add(key)
    keysByUid.set(event.metadata.uid, key)
  }
  return faults
}

function stateFaults(
  key: string,
  { last, end }: OriginState,
  event: CoreEvent | undefined,
  deletes: CheckOptions['deletes'],
): Fault[] {
  if (event === undefined) {
    const isWanted = deletes === 'never' || end === undefined || end === 'expired'
    const detail = `${end ?? 'exists'} at the origin, version ${last.metadata.resourceVersion}`
    return isWanted ? [{ kind: 'missing', key, detail }] : []
  }
  if (deletes === 'explicit' && end === 'early') {
    return [{ kind: 'not deleted', key, detail: `version ${versionOf(event)}` }]
  }
  return contentFaults(key, last, event)
}

function contentFaults(key: string, last: CoreEvent, event: CoreEvent): Fault[] {
  const { uid, resourceVersion } = last.metadata
  const version = versionOf(event)
  const detail = `${version} instead of ${resourceVersion}`
  if (version === undefined || !/^\d+$/.test(version)) {
    return [{ kind: 'other version', key, detail }]
  }
  if (BigInt(version) < BigInt(resourceVersion)) return [{ kind: 'older', key, detail }]
  if (version !== resourceVersion) return [{ kind: 'other version', key, detail }]
  if (event.metadata.uid !== uid) {
    return [{ kind: 'other uid', key, detail: `${event.metadata.uid} instead of ${uid}` }]
  }
  const path = firstDifference(comparable(last), comparable(event))
  return path === undefined ? [] : [{ kind: 'other content', key, detail: path }]
}

/** One change in a watch of the mirror. */
export interface SeenChange {
  readonly key: string
  /** The version at the origin of what was put; undefined for a delete. */
  readonly version: string | undefined
}

/**
 * Puts that do not move their event forward: the mirror wrote something twice, or went back. After
 * a delete the mirror may read the same changes again when it resumes, and has to repeat them.
 */
export function orderFaults(changes: Iterable<SeenChange>): Fault[] {
  const faults: Fault[] = []
  const newest = new Map<string, bigint>()
  for (const { key, version } of changes) {
    if (version === undefined) {
      newest.delete(key)
      continue
    }
    const before = newest.get(key)
    const now = BigInt(version)
    if (before === undefined || now > before) newest.set(key, now)
    else {
      const kind = now === before ? 'duplicated' : 'older'
      faults.push({ kind, key, detail: `a watch showed ${now} after ${before}` })
    }
  }
  return faults
}

/** How many events reappeared in the version in which they had been deleted, or an older one. */
export function reappeared(changes: Iterable<SeenChange>): number {
  const newest = new Map<string, bigint>()
  const found = new Set<string>()
  for (const { key, version } of changes) {
    if (version === undefined) continue
    const before = newest.get(key)
    if (before !== undefined && BigInt(version) <= before) found.add(key)
    else newest.set(key, BigInt(version))
  }
  return found.size
}

export function keyOf({ metadata }: CoreEvent): string {
  return `${metadata.namespace}/${metadata.name}`
}

export function versionOf({ metadata }: CoreEvent): string | undefined {
  return metadata.annotations?.[originVersionAnnotation]
}

/** Removes what a mirror sets itself: the version here, and its annotations. */
function comparable({ apiVersion: _, kind: __, ...event }: CoreEvent): object {
  const { resourceVersion: ___, annotations = {}, ...metadata } = event.metadata
  const { [originVersionAnnotation]: ____, [originEpochAnnotation]: _____, ...rest } = annotations
  const own = Object.keys(rest).length === 0 ? {} : { annotations: rest }
  return { ...event, metadata: { ...metadata, ...own } }
}

function firstDifference(expected: unknown, actual: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(expected, actual)) return undefined
  if (isRecord(expected) && isRecord(actual)) {
    for (const name of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      const inner = firstDifference(expected[name], actual[name], `${path}.${name}`)
      if (inner !== undefined) return inner
    }
  }
  return `${path}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
