import type { Version } from '../../src/storage/resource-version.ts'

/** A change of the store that the measured process requests. */
export type Order =
  | { readonly type: 'update'; readonly changes: number; readonly perSecond: number }
  | { readonly type: 'delete'; readonly changes: number }

export interface Done {
  readonly type: 'done'
  readonly version: Version
}
