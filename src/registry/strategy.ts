/**
 * What the server itself does to an event on its way in: the fields that are the server's alone, and
 * what becomes of an event that is to be deleted while somebody still holds on to it.
 */
import type { Event, ObjectMeta } from '../api/event.ts'
import { ZERO_TIME } from '../api/time.ts'

/** Finalizers of the garbage collector, which has no business with events. */
const COLLECTORS_FINALIZERS: ReadonlySet<string> = new Set(['orphan', 'foregroundDeletion'])

/** What is new about a new event. */
export interface Birth {
  readonly name: string | undefined
  readonly namespace: string
  readonly uid: string
  /** As it is printed. */
  readonly at: string
}

/** An event as it comes into the world: what a client says of the server's own fields is dropped. */
export function newEvent(sent: Event, birth: Birth): Event {
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
      ...metadata,
      ...(birth.name === undefined ? {} : { name: birth.name }),
      namespace: birth.namespace,
      uid: birth.uid,
      creationTimestamp: birth.at,
    },
  }
}

/** What `sent` makes of `old`: the server's own fields stay what they are. */
export function changedEvent(sent: Event, old: Event): Event {
  const { selfLink: _selfLink, resourceVersion: _resourceVersion, ...metadata } = sent.metadata
  const isDeleting = old.metadata.deletionTimestamp !== undefined
  return {
    ...withoutZeroTimes(sent),
    metadata: withoutUndefined({
      ...metadata,
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

/** A new event may not have these times, not even as zero; in an old one zero means not set. */
function withoutZeroTimes(event: Event): Event {
  const { deprecatedFirstTimestamp: first, deprecatedLastTimestamp: last, ...others } = event
  if (first !== ZERO_TIME && last !== ZERO_TIME) return event
  return {
    ...others,
    ...(first === undefined || first === ZERO_TIME ? {} : { deprecatedFirstTimestamp: first }),
    ...(last === undefined || last === ZERO_TIME ? {} : { deprecatedLastTimestamp: last }),
  }
}

/** Nothing keeps it any more, and its deletion was asked for. */
export function isReleased({ metadata }: Event): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0
}

/**
 * What a delete leaves of an event: undefined when it goes, the same object when it is waiting for
 * its finalizers already.
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
      // What is being deleted is wanted in another way than before.
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
