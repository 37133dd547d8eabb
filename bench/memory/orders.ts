import type { Version } from '../../src/storage/resource-version.ts'

/** What the measured process wants done to the store. */
export type Order =
  | { readonly type: 'update'; readonly changes: number; readonly perSecond: number }
  | { readonly type: 'delete'; readonly changes: number }

export interface Told {
  readonly type: 'done'
  readonly version: Version
}
