import type { EventScope, EventSelector } from '../../storage/storage.ts'

export interface Query {
  readonly scope: EventScope
  readonly selector?: EventSelector | undefined
}
