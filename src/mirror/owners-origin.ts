import type { NamedObject } from '../incidents/workload.ts'
import type { ChangeOf, ListPageOptions, OriginWatchOptions, PageOf } from './origin.ts'

/** The resources whose owners are read, and the kind of their objects. */
export const OWNED_RESOURCES = [
  { group: '/api/v1', resource: 'pods', kind: 'Pod' },
  { group: '/apis/apps/v1', resource: 'replicasets', kind: 'ReplicaSet' },
  { group: '/apis/batch/v1', resource: 'jobs', kind: 'Job' },
] as const

export type OwnedResource = (typeof OWNED_RESOURCES)[number]

export interface OwnedObject {
  readonly namespace: string
  readonly name: string
  readonly resourceVersion: string
  /** The controller among its owners. */
  readonly owner: NamedObject | undefined
}

/** Where a mirror reads owners. Lists and watches behave as those of an Origin. */
export interface OwnersOrigin {
  listPage(resource: OwnedResource, options: ListPageOptions): Promise<PageOf<OwnedObject>>
  watch(resource: OwnedResource, options: OriginWatchOptions): AsyncIterable<ChangeOf<OwnedObject>>
  close?(): void
}
