/**
 * Versions are one order for all keys, so they must rise with time for any keys: a change that is
 * called after a response has a later version than anything in that response, and a list a version
 * that is not earlier.
 */
import { describeOperation, type Operation, type Violation } from './history.ts'

export function checkRealTime(operations: readonly Operation[]): Violation[] {
  const violations: Violation[] = []
  const byReturn = operations.toSorted((a, b) => a.returnedAt - b.returnedAt)
  let answered = 0
  let newest: Operation | undefined
  for (const operation of operations.toSorted((a, b) => a.calledAt - b.calledAt)) {
    let earlier = byReturn[answered]
    while (earlier !== undefined && earlier.returnedAt < operation.calledAt) {
      if (newest === undefined || newestKnownTo(earlier) > newestKnownTo(newest)) newest = earlier
      answered++
      earlier = byReturn[answered]
    }
    if (newest === undefined || mayFollow(operation, newestKnownTo(newest))) continue
    violations.push({
      kind: 'versions-go-back',
      message: `${describeOperation(operation)} came after ${describeOperation(newest)}`,
    })
  }
  return violations
}

function mayFollow(operation: Operation, version: number): boolean {
  if (operation.type === 'list') return operation.version >= version
  if (operation.type === 'get' || operation.outcome.result !== 'applied') return true
  return operation.outcome.version > version
}

/** The newest version that this response proves to have existed. */
function newestKnownTo(operation: Operation): number {
  if (operation.type === 'list') return operation.version
  if (operation.type === 'get') return operation.seen?.version ?? 0
  const { outcome } = operation
  if (outcome.result === 'applied') return outcome.version
  if (outcome.result === 'refused') return outcome.seen?.version ?? 0
  return 0
}
