/**
 * Fields that the server sets in created and changed events, and the state of an event that is
 * deleted while it has finalizers.
 */
import { originEpochAnnotation, originVersionAnnotation } from '../api/annotations.ts'
import type { Event, ObjectMeta } from '../api/event.ts'
import { ZERO_TIME } from '../api/time.ts'

/** Finalizers of the garbage collector, which does not handle events. */
const COLLECTORS_FINALIZERS: ReadonlySet<string> = new Set(['orphan', 'foregroundDeletion'])

/** Fields that the server sets in a new event. */
export interface Creation {
  readonly name: string | undefined
  readonly namespace: string
  readonly uid: string
  /** The current time as a timestamp. */
  readonly at: string
}

/** A new event, without values that the client sent for fields set by the server. */
export function newEvent(sent: Event, creation: Creation): Event {
  const {
    selfLink: _selfLink,
    resourceVersion: _resourceVersion,
    deletionTimestamp: _deletionTimestamp,
    deletionGracePeriodSeconds: _deletionGracePeriodSeconds,
    managedFields: _managedFields,
    ...metadata
  } = sent.metadata
  return {
    ...sent,
    metadata: {
      ...withoutOrigin(metadata),
      ...(creation.name === undefined ? {} : { name: creation.name }),
      namespace: creation.namespace,
      uid: creation.uid,
      creationTimestamp: creation.at,
    },
  }
}

/** `sent` as the next state of `old`: fields set by the server keep their values. */
export function changedEvent(sent: Event, old: Event): Event {
  const { selfLink: _selfLink, resourceVersion: _resourceVersion, ...metadata } = sent.metadata
  const isDeleting = old.metadata.deletionTimestamp !== undefined
  return {
    ...withoutZeroTimes(sent),
    metadata: withoutUndefined({
      ...withoutOrigin(metadata),
      uid: metadata.uid ?? old.metadata.uid,
      generation: old.metadata.generation,
      creationTimestamp: old.metadata.creationTimestamp,
      ...(isDeleting
        ? {
            deletionTimestamp: old.metadata.deletionTimestamp,
            deletionGracePeriodSeconds: old.metadata.deletionGracePeriodSeconds,
          }
        : {}),
      managedFields: old.metadata.managedFields,
    }),
  }
}

/**
 * Drops the annotations of mirrors. A client that set them could make a mirror mistake its event for a
 * newer state of the origin.
 */
function withoutOrigin(metadata: ObjectMeta): ObjectMeta {
  const { annotations } = metadata
  if (annotations === undefined) return metadata
  const isMarked = ORIGIN_ANNOTATIONS.some((name) => Object.hasOwn(annotations, name))
  if (!isMarked) return metadata
  const { annotations: _annotations, ...others } = metadata
  const rest = Object.entries(annotations).filter(([name]) => !ORIGIN_ANNOTATIONS.includes(name))
  return rest.length === 0 ? others : { ...others, annotations: Object.fromEntries(rest) }
}

const ORIGIN_ANNOTATIONS: readonly string[] = [originVersionAnnotation, originEpochAnnotation]

/** A new event must not have these times at all; in a change, zero means unset. */
function withoutZeroTimes(event: Event): Event {
  const { deprecatedFirstTimestamp: first, deprecatedLastTimestamp: last, ...others } = event
  if (first !== ZERO_TIME && last !== ZERO_TIME) return event
  return {
    ...others,
    ...(first === undefined || first === ZERO_TIME ? {} : { deprecatedFirstTimestamp: first }),
    ...(last === undefined || last === ZERO_TIME ? {} : { deprecatedLastTimestamp: last }),
  }
}

/** Whether the event is being deleted and has no finalizers left. */
export function isReleased({ metadata }: Event): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0
}

/**
 * The event after a delete: undefined when it is removed, the same object when it is already waiting
 * for its finalizers.
 */
export function afterDelete(event: Event, at: string): Event | undefined {
  const finalizers = event.metadata.finalizers?.filter((name) => !COLLECTORS_FINALIZERS.has(name))
  if (finalizers === undefined || finalizers.length === 0) return undefined
  const { deletionTimestamp, generation = 0 } = event.metadata
  if (deletionTimestamp !== undefined) return event
  return {
    ...event,
    metadata: {
      ...event.metadata,
      // A deletion changes the desired state, so the generation rises.
      ...(generation > 0 && { generation: generation + 1 }),
      finalizers,
      deletionTimestamp: at,
      deletionGracePeriodSeconds: 0,
    },
  }
}

function withoutUndefined(
  meta: {
    readonly [Name in keyof ObjectMeta]: ObjectMeta[Name] | undefined
  },
): ObjectMeta {
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== undefined))
}
