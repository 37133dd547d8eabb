/**
 * Checks a run: nothing is missing at the target, nothing is stored twice, nothing is older than
 * the origin's last state, and the states of one name arrive in the order of the origin.
 */
import type {
  Gap,
  OriginChange,
  RunHistory,
  Sighting,
  TargetChange,
  Violation,
  ViolationKind,
} from './history.ts'

export function check(history: RunHistory): readonly Violation[] {
  const final = finalStates(history.target)
  return [
    ...checkTruth(history),
    ...checkOrder(history.target, 'the etcd of the target'),
    ...history.observers.flatMap((sightings, index) =>
      checkOrder(withoutRepetitions(sightings), `observer ${index}`),
    ),
    ...checkDeletes(history),
    ...checkFinal(history, final),
    ...history.lists.flatMap((list, index) =>
      checkList(list, final, `the list of replica ${index}`),
    ),
    ...history.observers.flatMap((sightings, index) =>
      checkList([...finalStates(sightings).values()], final, `observer ${index}`),
    ),
  ]
}

/** Every state at the target is one that the origin had. */
function checkTruth({ origin, target }: RunHistory): Violation[] {
  const known = new Map(
    origin.filter(({ type }) => type === 'put').map((change) => [identity(change), change]),
  )
  const violations: Violation[] = []
  for (const change of target) {
    if (change.type === 'delete') continue
    if (change.epoch > 0)
      violations.push(found('epoch', `${text(change)} is of epoch ${change.epoch}`))
    const original = known.get(identity(change))
    if (original === undefined) violations.push(found('invented', text(change)))
    else if (original.content !== change.content) {
      const difference = `${original.content} at the origin, ${change.content} at the target`
      violations.push(found('invented', `${text(change)} has another content: ${difference}`))
    }
  }
  return violations
}

/** No name goes back, and no state comes twice. A delete begins anew. */
function checkOrder(changes: readonly Sighting[], where: string): Violation[] {
  const current = new Map<string, Sighting>()
  const violations: Violation[] = []
  for (const change of changes) {
    const before = current.get(change.name)
    if (change.type === 'delete') {
      current.delete(change.name)
      continue
    }
    current.set(change.name, change)
    if (before === undefined || before.version < change.version) continue
    const kind = orderKind(before, change)
    violations.push(found(kind, `${where}: ${text(change)} came after ${text(before)}`))
  }
  return violations
}

function orderKind(before: Sighting, change: Sighting): ViolationKind {
  if (before.uid !== change.uid) return 'predecessor'
  return before.version === change.version ? 'duplicate' : 'went back'
}

/** An observer that lists again, or resumes, may receive its last state of a name once more. */
function withoutRepetitions(sightings: readonly Sighting[]): readonly Sighting[] {
  const current = new Map<string, string>()
  return sightings.filter((sighting) => {
    const { name, type } = sighting
    const isRepeated = type === 'put' && current.get(name) === identity(sighting)
    if (type === 'put') current.set(name, identity(sighting))
    else current.delete(name)
    return !isRepeated
  })
}

function checkDeletes({ origin, target, deletes }: RunHistory): Violation[] {
  const deletedAt = new Map(
    origin.filter(({ type }) => type === 'delete').map(({ uid, version }) => [uid, version]),
  )
  return target
    .filter(({ type, uid }) => type === 'delete' && !(deletes === 'explicit' && deletedAt.has(uid)))
    .map((change) => found('deleted', text(change)))
}

/** The last state of every name is here. */
function checkFinal(
  { origin, gaps, deletes }: RunHistory,
  final: ReadonlyMap<string, Sighting>,
): Violation[] {
  const violations: Violation[] = []
  for (const [name, changes] of byName(origin)) {
    const state = final.get(name)
    const isDeleted = changes.at(-1)?.type === 'delete'
    if (isDeleted && deletes === 'explicit') {
      if (state !== undefined) violations.push(found('not deleted', text(state)))
      continue
    }
    const wanted = lastOwed(changes, gaps)
    if (wanted === undefined) continue
    if (state === undefined) violations.push(found('missing', text(wanted)))
    else if (!(state.version >= wanted.version)) {
      violations.push(found('outdated', `${text(state)} is stored instead of ${text(wanted)}`))
    }
  }
  return violations
}

/** The newest state that the mirror must have stored: it was not lost in a gap. */
function lastOwed(
  changes: readonly OriginChange[],
  gaps: readonly Gap[],
): OriginChange | undefined {
  return changes.findLast(({ type, version }, index) => {
    if (type === 'delete') return false
    const next = changes[index + 1]
    const isLost = (gap: Gap) =>
      next !== undefined && version > gap.after && next.version <= gap.upTo
    return !gaps.some(isLost)
  })
}

/** What clients receive is what is stored. */
function checkList(
  list: readonly Sighting[],
  final: ReadonlyMap<string, Sighting>,
  where: string,
): Violation[] {
  const violations: Violation[] = []
  const listed = new Map<string, Sighting>()
  for (const item of list) {
    if (listed.has(item.name)) violations.push(found('duplicate', `${where}: ${text(item)}`))
    listed.set(item.name, item)
  }
  for (const [name, state] of final) {
    const item = listed.get(name)
    if (item !== undefined && identity(item) === identity(state)) continue
    const instead = item === undefined ? 'does not have it' : `has ${text(item)}`
    violations.push(found('served', `${text(state)} is stored, and ${where} ${instead}`))
  }
  for (const [name, item] of listed) {
    if (final.has(name)) continue
    violations.push(found('served', `${where} has ${text(item)}, which is not stored`))
  }
  return violations
}

function finalStates<State extends Sighting>(changes: readonly State[]): Map<string, State> {
  const states = new Map<string, State>()
  for (const change of changes) {
    if (change.type === 'put') states.set(change.name, change)
    else states.delete(change.name)
  }
  return states
}

function byName(changes: readonly OriginChange[]): Map<string, OriginChange[]> {
  const names = new Map<string, OriginChange[]>()
  for (const change of changes) {
    const known = names.get(change.name)
    if (known === undefined) names.set(change.name, [change])
    else known.push(change)
  }
  return names
}

type State = Pick<TargetChange, 'name' | 'uid' | 'version'>

function identity({ name, uid, version }: State): string {
  return `${name} ${uid} ${version}`
}

function text({ name, uid, version }: State): string {
  return `${name} (uid ${uid}, version ${version})`
}

function found(kind: ViolationKind, message: string): Violation {
  return { kind, message }
}
