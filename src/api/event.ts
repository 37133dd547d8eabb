/**
 * The internal form of an event, with the field names of events.k8s.io/v1. Empty strings and zeros are
 * absent, except in fields with `keepsZero` in schema.ts; an empty structure is absent if its field has
 * `whenUnset: '{}'` there. Times are strings in canonical form, so equal times are equal strings.
 */
export interface Event {
  readonly metadata: ObjectMeta
  readonly eventTime?: string
  readonly series?: EventSeries
  readonly reportingController?: string
  readonly reportingInstance?: string
  readonly action?: string
  readonly reason?: string
  readonly regarding?: ObjectReference
  readonly related?: ObjectReference
  readonly note?: string
  readonly type?: string
  readonly deprecatedSource?: EventSource
  readonly deprecatedFirstTimestamp?: string
  readonly deprecatedLastTimestamp?: string
  readonly deprecatedCount?: number
}

export interface ObjectMeta {
  readonly name?: string
  readonly generateName?: string
  readonly namespace?: string
  readonly selfLink?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: StringMap
  readonly annotations?: StringMap
  readonly ownerReferences?: readonly OwnerReference[]
  readonly finalizers?: readonly string[]
  readonly managedFields?: readonly ManagedFieldsEntry[]
}

/** Keys come from clients and may be `constructor`: use Object.hasOwn or Object.entries. */
export type StringMap = Readonly<Record<string, string>>

export interface EventSeries {
  readonly count?: number
  readonly lastObservedTime?: string
}

export interface EventSource {
  readonly component?: string
  readonly host?: string
}

export interface ObjectReference {
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  readonly uid?: string
  readonly apiVersion?: string
  readonly resourceVersion?: string
  readonly fieldPath?: string
}

export interface OwnerReference {
  readonly apiVersion?: string
  readonly kind?: string
  readonly name?: string
  readonly uid?: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ManagedFieldsEntry {
  readonly manager?: string
  readonly operation?: string
  readonly apiVersion?: string
  readonly time?: string
  readonly fieldsType?: string
  readonly fieldsV1?: unknown
  readonly subresource?: string
}
