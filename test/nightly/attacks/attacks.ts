/** Attacks of malicious clients, each run by itself against a running server. */
import type { Attack } from './attack.ts'
import { CONNECTION_ATTACKS } from './connections.ts'
import { SLOT_ATTACKS } from './slots.ts'
import { SLOW_WATCHES } from './slow-watches.ts'
import { STREAM_ATTACKS } from './streams.ts'

export const ATTACKS: readonly Attack[] = [
  ...STREAM_ATTACKS,
  ...CONNECTION_ATTACKS,
  SLOW_WATCHES,
  ...SLOT_ATTACKS,
]

/** The name of an attack on the command line. */
export function keyOf({ name, sender }: Attack): string {
  return `${name} (${sender})`
}
