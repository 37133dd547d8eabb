import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** Polls until a condition holds; fails with `what` when it does not hold in time. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  waitMsMax = 5000,
): Promise<void> {
  const deadline = Date.now() + waitMsMax
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within ${waitMsMax} ms: ${what}`)
    await sleep(POLL_MS)
  }
}
