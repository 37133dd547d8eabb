import type { Version } from '../storage/resource-version.ts'

/** Why an event was deleted before it was archived. */
export type LossReason = 'evicted' | 'no-space'

/** What retention asks the archive. */
export interface ArchiveGate {
  /** Where the archive is: all replicas need the same one. */
  readonly name: string
  /** Whether the change with this version is in the archive, or is not to be archived. */
  isArchived(version: Version): boolean
  /** Whether etcd and memory have room for events that wait for the archive. */
  canWait(): boolean
  /** The archive still has to read the changes after this version. Undefined: it need not. */
  readAfter(): Version | undefined
  /** Called for each event that retention has deleted, with its last version. */
  onDeleted(version: Version, reason: LossReason): void
}
