/**
 * Compares the responses to callers with the history of etcd: no acknowledged write is lost, no
 * rejected write was applied, none was applied twice, and there is no change without a request.
 */
import type { Operation, Violation, WriteOperation } from '../model/history.ts'
import type { Change } from './etcd-history.ts'
import type { History } from './watches.ts'

export function checkAcknowledged(
  operations: readonly Operation[],
  history: History,
): readonly Violation[] {
  const writes = operations.filter((operation) => operation.type === 'write')
  return [...checkAnswers(writes, history), ...checkChanges(writes, history.all)]
}

function checkAnswers(writes: readonly WriteOperation[], history: History): Violation[] {
  const violations: Violation[] = []
  for (const { id, key, value, outcome } of writes) {
    if (outcome.result !== 'applied') continue
    const change = history.at(outcome.version)
    const isThere =
      change?.key === key && change.value === value && change.previous === outcome.base?.value
    if (isThere) continue
    const there = JSON.stringify(change)
    const message = `#${id} ${key}=${value} was acknowledged at ${outcome.version}; etcd has ${there}`
    violations.push({ kind: 'acknowledged-write-lost', message })
  }
  return violations
}

function checkChanges(
  writes: readonly WriteOperation[],
  changes: readonly Change[],
): readonly Violation[] {
  const violations: Violation[] = []
  const puts = new Map(writes.map((write) => [write.value, write]))
  const happened = new Set<string>()
  const deletes = writes.filter((write) => write.value === undefined)
  const acknowledged = new Set(deletes.map(({ outcome }) => versionOf(outcome)))
  // An unknown delete was based on one state, and explains the end of that one only.
  const unknown = new Set(deletes.map(({ key, outcome }) => unknownTarget(key, outcome)))
  for (const { version, key, value, previous } of changes) {
    if (value === undefined) {
      if (acknowledged.has(version) || unknown.has(`${key} ${previous}`)) continue
      const message = `${key} was deleted at ${version}, without a request`
      violations.push({ kind: 'unasked-change', message })
      continue
    }
    const result = puts.get(value)?.outcome.result
    if (result !== 'applied' && result !== 'unknown') {
      const message = `${key}=${value} at ${version}: the write was ${result ?? 'never made'}`
      violations.push({ kind: 'unasked-change', message })
    }
    if (happened.has(value)) {
      violations.push({ kind: 'applied-twice', message: `${key}=${value} again at ${version}` })
    }
    happened.add(value)
  }
  return violations
}

function versionOf(outcome: WriteOperation['outcome']): number | undefined {
  return outcome.result === 'applied' ? outcome.version : undefined
}

function unknownTarget(key: string, outcome: WriteOperation['outcome']): string | undefined {
  return outcome.result === 'unknown' ? `${key} ${outcome.base?.value}` : undefined
}
