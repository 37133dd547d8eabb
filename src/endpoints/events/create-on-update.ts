import type { Caller } from '../../gate/gate.ts'
import { attributesOf, type Target } from '../../gate/target.ts'
import { CreationNeeded } from '../../registry/change-checks.ts'
import type { Updated } from '../../registry/writes.ts'

/**
 * Runs a write that creates the event if it does not exist. Creating needs a permission of its own,
 * which is checked only when the event turns out to be missing.
 */
export async function orCreate(
  target: Target,
  caller: Caller,
  write: (mayCreate: boolean) => Promise<Updated>,
): Promise<Updated> {
  try {
    return await write(false)
  } catch (error) {
    if (!(error instanceof CreationNeeded)) throw error
    await caller.authorize({ ...attributesOf(target), verb: 'create' })
    return write(true)
  }
}
