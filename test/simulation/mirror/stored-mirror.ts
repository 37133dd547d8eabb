/**
 * What etcd holds for the mirrored cluster, from its commits: the events by their key, the record of
 * the mirror, and the key of the elected replica. It reads stored values by itself, independently of
 * the production code that is under test.
 */

import type { Change } from '../../worlds/checker/commit.ts'
import type { OriginModel, OriginState } from './origin-model.ts'
import { mirroredCluster } from './setting.ts'

const eventsFolder = `/events/${mirroredCluster}/`
const recordEnd = `/control/mirrors/${mirroredCluster}`
export const leaderEnd: string = `/control/mirror-leaders/${mirroredCluster}`
const versionMark = '"tidings.dev/origin-resource-version":"'
const epochMark = '"tidings.dev/origin-epoch":"'
const uidMark = '"uid":"'

/** An event of the mirrored cluster in etcd. */
export interface StoredMirrorEvent {
  readonly key: number
  readonly state: OriginState
  readonly epoch: number
  /** When it was committed; infinitely long ago if it was restored. */
  readonly at: number
  readonly value: Buffer
}

export interface SavedRecord {
  readonly epoch: number
  readonly positions: Readonly<Record<string, string>>
  readonly state: string
  readonly message: string
}

export type MirrorChange =
  | { readonly kind: 'put'; readonly event: StoredMirrorEvent }
  | { readonly kind: 'delete'; readonly key: number }
  | { readonly kind: 'record'; readonly record: SavedRecord }
  /** Undefined: nobody is elected. */
  | { readonly kind: 'leader'; readonly replica: number | undefined }
  | { readonly kind: 'wrong'; readonly what: string }

/** Undefined for a key that is not of the mirrored cluster. */
export function readChange(
  change: Change,
  at: number,
  model: OriginModel,
): MirrorChange | undefined {
  const text = change.key.toString('latin1')
  const folder = text.indexOf(eventsFolder)
  if (folder >= 0) return readEvent(change, text.slice(folder + eventsFolder.length), { at, model })
  if (text.endsWith(leaderEnd)) return { kind: 'leader', replica: replicaIn(change) }
  if (!text.endsWith(recordEnd) || change.type === 'delete') return undefined
  return { kind: 'record', record: JSON.parse(change.value.toString()) as SavedRecord }
}

function replicaIn({ type, value }: Change): number | undefined {
  return type === 'delete' ? undefined : Number(/^replica-(\d+)/.exec(value.toString())?.[1])
}

function readEvent(
  change: Change,
  path: string,
  { at, model }: { readonly at: number; readonly model: OriginModel },
): MirrorChange {
  const key = model.keyOf(path)
  if (key === undefined) return { kind: 'wrong', what: `the origin never had ${path}` }
  if (change.type === 'delete') return { kind: 'delete', key }
  const text = change.value.toString('latin1')
  const version = Number(textAfter(text, versionMark))
  const state = model.states.get(version)
  if (state === undefined || state.key !== key) {
    return { kind: 'wrong', what: `the origin never had version ${version} of ${path}` }
  }
  const uid = textAfter(text, uidMark)
  if (uid !== state.uid) {
    return { kind: 'wrong', what: `${path} of version ${version} has uid ${uid}, not ${state.uid}` }
  }
  const epoch = Number(textAfter(text, epochMark) ?? 0)
  return { kind: 'put', event: { key, state, epoch, at, value: change.value } }
}

function textAfter(text: string, mark: string): string | undefined {
  const start = text.indexOf(mark)
  if (start < 0) return undefined
  return text.slice(start + mark.length, text.indexOf('"', start + mark.length))
}

/** Returns whether the content is that of the origin: fields that no check of versions would notice. */
export function hasContentOf({ value, state }: StoredMirrorEvent, model: OriginModel): boolean {
  const stored = JSON.parse(value.subarray(value.indexOf('\n') + 1).toString())
  const wanted = model.eventOf(state)
  const { metadata } = wanted
  return (
    stored.note === wanted.note &&
    stored.reason === wanted.reason &&
    stored.type === wanted.type &&
    stored.deprecatedCount === wanted.deprecatedCount &&
    stored.deprecatedLastTimestamp === wanted.deprecatedLastTimestamp &&
    stored.regarding.name === wanted.regarding?.name &&
    stored.metadata.creationTimestamp === metadata.creationTimestamp &&
    Object.keys(stored.metadata.annotations).every((name) => name.startsWith('tidings.dev/'))
  )
}
