import { attributesOf } from '../gate/attributes.ts'
import type { Caller } from '../gate/gate.ts'
import type { Request } from '../http/exchange.ts'
import { CreationNeeded } from '../registry/change-refusals.ts'
import type { Updated } from '../registry/writes.ts'

/**
 * A write that may turn out to create what it would have changed. That is a permission of its own,
 * and known to be needed only when the event is not there.
 */
export async function orCreate(
  request: Request,
  caller: Caller,
  write: (mayCreate: boolean) => Promise<Updated>,
): Promise<Updated> {
  try {
    return await write(false)
  } catch (error) {
    if (!(error instanceof CreationNeeded)) throw error
    await caller.authorize({ ...attributesOf(request), verb: 'create' })
    return write(true)
  }
}
