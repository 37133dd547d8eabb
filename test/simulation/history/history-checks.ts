/**
 * What must be true of an archive, whatever happens to replicas, etcd, the store and the processes that write its
 * files: checked on every commit of the simulated etcd and on every change in the store.
 */
import type { Pointer } from '../../../src/history/manifest.ts'
import type { Change } from '../../worlds/checker/commit.ts'
import { CommitReader } from '../../worlds/checker/commit-reader.ts'
import type { ChangeRecord } from '../../worlds/checker/lineage.ts'
import { revisionIn } from '../../worlds/checker/stored-text.ts'
import type { ClientWorld } from '../../worlds/workload/contract.ts'
import type { ClusterObserver, Commit } from '../etcd/contract.ts'
import { fencesOf } from '../fences.ts'
import { ArchiveModel, type ExpectedEvent, type Step } from './archive-model.ts'
import { ArchiveView, type PlacedRow } from './archive-view.ts'
import type { Bucket } from './bucket.ts'
import { HistoryTally } from './history-tally.ts'
import type { HistorySetting } from './setting.ts'

const periodMs = 1_000
/**
 * After the last fault, the archive works again within this time: 45 s for the engine itself (see
 * worlds/checker/calm.ts), then a term of 5 s may have to end, and the archiver retries after at most 30 s.
 */
const recoveryMs = 110_000
/** How long a change takes in a calm world, besides the interval of segments. */
const lagMsMax = 15_000
/** A due event is swept within this time after it was archived. */
const sweepMsMax = 40_000
/** How long after etcd was full a replica may still believe that it is. */
const fullMs = 60_000
/** An hour: see READ_AFTER_MS_MAX in src/history/archive-state.ts. */
const readAfterMs = 3_600_000
const leaderEnd = '/control/archiver'
const pointerEnd = '/control/archive'

export interface HistoryChecksOptions {
  readonly world: ClientWorld
  readonly bucket: Bucket
  readonly setting: HistorySetting
  readonly wallMs: () => number
}

export class HistoryChecks implements ClusterObserver {
  readonly #options: HistoryChecksOptions
  readonly #world: ClientWorld
  readonly #model = new ArchiveModel()
  readonly #view: ArchiveView
  readonly #reader: CommitReader
  readonly #tally = new HistoryTally()
  /** Events that clients tried to delete. */
  readonly clientDeletes: Set<string> = new Set()
  #pointer: Pointer | undefined
  #leaderRevision = 0
  #leader = 0
  #fullUntil = Number.NEGATIVE_INFINITY

  constructor(options: HistoryChecksOptions) {
    this.#options = options
    this.#world = options.world
    this.#view = new ArchiveView(options.bucket)
    this.#reader = new CommitReader(({ guarantee, what }) => this.#world.violation(guarantee, what))
  }

  get calmNeededMs(): number {
    const { eventTtlMs, driftMax } = this.#world.limits
    return recoveryMs + this.#lagMsMax + eventTtlMs * (1 + 2 * driftMax) + sweepMsMax
  }

  get outcomes(): ReadonlyMap<string, number> {
    return this.#tally.outcomes
  }

  /** The replica that etcd says is elected to write. */
  get elected(): number | undefined {
    return this.#leaderRevision === 0 ? undefined : this.#leader
  }

  start(): void {
    this.#world.after(periodMs, this.#period)
  }

  /** etcd is, or was until now, full: events are deleted although they are not archived. */
  isFull(): void {
    this.#fullUntil = this.#world.now() + fullMs
  }

  // ---- the store

  /** An object is replaced, or deleted. */
  onObject(name: string, next: Buffer | undefined): void {
    if (next === undefined) this.#tally.deletedObjects++
    if (!this.#view.isNamed(name)) return
    const before = this.#options.bucket.get(name)
    if (next !== undefined && before?.bytes.equals(next) === true) return
    this.#world.violation(
      'what the manifest names stays',
      `${name} was ${next === undefined ? 'deleted' : 'changed'} in the store`,
      [`the pointer: ${JSON.stringify(this.#pointer)}`],
    )
  }

  // ---- etcd

  onEvent(text: string): void {
    this.#world.trace('etcd', () => text)
  }

  onCommit(commit: Commit): void {
    for (const record of this.#reader.records(commit)) this.#changed(record)
    for (const change of commit.changes) {
      const key = change.key.toString('latin1')
      if (key.endsWith(leaderEnd)) this.#elected(change, commit.revision)
      else if (key.endsWith(pointerEnd)) this.#moved(change, commit)
    }
  }

  #elected({ type, value }: Change, revision: number): void {
    this.#leaderRevision = type === 'delete' ? 0 : revision
    if (type === 'delete') return
    this.#leader = Number(/^replica-(\d+)/.exec(value.toString())?.[1])
    this.#tally.terms++
  }

  #changed(record: ChangeRecord): void {
    const head = this.#model.heads.get(record.path)
    this.#model.changed(record)
    if (!record.isDelete) {
      this.#tally.puts++
      return
    }
    if (head === undefined || this.clientDeletes.has(head.uid)) return
    this.#tally.expired++
    const position = this.#pointer?.position ?? 0
    if (head.version <= position || this.#mayDeleteEarly) return
    this.#world.violation(
      'nothing expires before it is archived',
      `${record.path} was deleted with version ${head.version}, the position of the archive is ${position}`,
    )
  }

  /** There may be no room for events that wait for the archive, or a budget was exceeded. */
  get #mayDeleteEarly(): boolean {
    const { world } = this.#options
    return world.now() < this.#fullUntil || world.policies.newest.budgets.length > 0
  }

  #moved(change: Change, { revision, command }: Commit): void {
    const { violation } = this.#reports
    if (change.type === 'delete') {
      violation('the archive never goes back', 'the pointer was deleted')
      return
    }
    const fence = fencesOf(command, leaderEnd).get(change.key.toString('latin1'))
    if (fence !== this.#leaderRevision || fence === 0) {
      const what = `term ${fence} moved the pointer, but the term was ${this.#leaderRevision}`
      violation('only the elected replica writes the archive', what)
    }
    const before = this.#pointer
    const pointer = JSON.parse(change.value.toString()) as Pointer
    this.#pointer = pointer
    this.#world.trace('archive', () => `revision ${revision}: ${change.value.toString()}`)
    this.#checkOrder(before, pointer, revision)
    const isSame = before?.manifest.name === pointer.manifest.name
    const rewritten = isSame ? new Set<string>() : this.#view.moveTo(pointer)
    if (typeof rewritten === 'string') {
      violation('a manifest is complete', rewritten)
      return
    }
    const step = this.#stepTo(before, pointer)
    const passed = this.#model.moved(pointer.position, step)
    this.#tally.moved({ step, isSame, isForward: before?.position !== pointer.position })
    for (const uid of new Set([...passed, ...rewritten])) this.#checkEvent(uid)
  }

  get #reports() {
    const violation = (guarantee: string, what: string): void =>
      this.#world.violation(guarantee, what, [`the pointer: ${JSON.stringify(this.#pointer)}`])
    return { violation }
  }

  #stepTo(before: Pointer | undefined, { position, gaps }: Pointer): Step {
    if (before === undefined) return 'read-all'
    const gap = gaps.at(-1)
    const isSkipped = gap?.to === position && gap.from === before.position
    return isSkipped && gap.from < gap.to ? 'skipped' : 'followed'
  }

  #checkOrder(before: Pointer | undefined, after: Pointer, revision: number): void {
    const { violation } = this.#reports
    if (revisionIn(after.position) >= revision) {
      violation('the position is of the past', `revision ${revision} says ${after.position}`)
    }
    if (before === undefined) return
    const isSame = before.manifest.name === after.manifest.name
    const isNext = isSame ? after.sequence === before.sequence : after.sequence > before.sequence
    if (isNext && after.position >= before.position) return
    violation('the archive never goes back', `the pointer was ${JSON.stringify(before)}`)
  }

  /** The rows of an event are exactly what its changes up to the position say. */
  #checkEvent(uid: string): void {
    const rows = this.#view.rowsOf(uid)
    const event = this.#model.events.get(uid)
    const { areClocksExact } = this.#options.setting
    const isExact = event?.isBounded !== true || areClocksExact
    const problem = wrongStates(rows, event) ?? (isExact ? wrongDeltas(rows, event) : undefined)
    if (problem === undefined) return
    const { guarantee, what } = problem
    this.#world.violation(guarantee, `event ${uid}, ${event?.path}: ${what}`, [
      `expected: ${JSON.stringify(event && { ...event, days: [...event.days] })}`,
      ...rows.map((row) => `row: ${JSON.stringify(row)}`),
      `the pointer: ${JSON.stringify(this.#pointer)}`,
    ])
  }

  /** What the archive has not read yet is not compacted, unless it is too far behind. */
  onCompact(revision: number): void {
    const { setting } = this.#options
    const pointer = this.#pointer
    if (pointer === undefined || revision <= revisionIn(pointer.position)) return
    this.#tally.gapsAllowed++
    const isLate = this.#options.wallMs() - pointer.positionAtMs > readAfterMs / 2
    // Where days pass in minutes, a replica may not know that the position has just moved.
    const isCertain = setting.areClocksExact && setting.wall.rate === 1
    if (isLate || !isCertain || this.#world.now() < this.#fullUntil) return
    this.#world.violation(
      'changes are kept until they are archived',
      `etcd was compacted to revision ${revision}`,
      [`the pointer: ${JSON.stringify(pointer)}`],
    )
  }

  // ---- the calm world

  get #lagMsMax(): number {
    return this.#options.setting.segmentMs * (1 + this.#world.limits.driftMax) + lagMsMax
  }

  readonly #period = (): void => {
    this.#world.after(periodMs, this.#period)
    const { calmSince } = this.#world
    const now = this.#world.now()
    if (calmSince !== undefined && now - calmSince > recoveryMs) this.#checkCalm(now, calmSince)
  }

  #checkCalm(now: number, calmSince: number): void {
    const { oldest } = this.#model
    const since = Math.max(calmSince + recoveryMs, oldest?.at ?? now)
    if (oldest === undefined || now - since < this.#lagMsMax) return
    this.#world.violation(
      'a calm world is archived',
      `the change with version ${oldest.version} was committed ${(now - oldest.at).toFixed(0)} ms ago, and is not archived`,
      [`the pointer: ${JSON.stringify(this.#pointer)}`],
    )
  }

  /** The writers have stopped, and the world has been calm for long enough. */
  atEnd(): void {
    const { heads, events, missed } = this.#model
    const [left] = heads
    if (left !== undefined) {
      const what = `${left[0]} is still there: ${JSON.stringify(left[1])}`
      this.#world.violation('due events expire', what)
    }
    for (const uid of new Set([...events.keys(), ...this.#view.uids])) this.#checkEvent(uid)
    this.#tally.ended({ events: events.size, missed: missed.size, files: this.#view.fileCount })
  }

  hasEnded(): void {}
}

interface Problem {
  readonly guarantee: string
  readonly what: string
}

const statesGuarantee = 'the archive has the newest state of each event and day'
const countsGuarantee = 'occurrences are counted once'

function wrongStates(
  rows: readonly PlacedRow[],
  event: ExpectedEvent | undefined,
): Problem | undefined {
  const guarantee = statesGuarantee
  const newest = new Map<string, PlacedRow>()
  for (const row of rows) {
    const known = newest.get(row.date)
    if (known === undefined || row.sequence > known.sequence) newest.set(row.date, row)
    const isTwice = known !== undefined && row.sequence === known.sequence
    if (isTwice) return { guarantee, what: `two rows of ${row.date} are of one segment` }
  }
  for (const [date, version] of event?.days ?? []) {
    const found = newest.get(date)
    if (found?.version !== version) {
      return { guarantee, what: `${date} has version ${found?.version}, not ${version}` }
    }
  }
  if (newest.size !== (event?.days.size ?? 0)) {
    return { guarantee, what: `it has rows of ${[...newest.keys()].join(', ')}` }
  }
  return undefined
}

/** Behind a gap these follow from the times of occurrences, by the clocks of those who reported them. */
function wrongDeltas(
  rows: readonly PlacedRow[],
  event: ExpectedEvent | undefined,
): Problem | undefined {
  if (event === undefined) return undefined
  const [, ...later] = [...rows].sort((one, other) => one.version - other.version)
  const wrong = later.find(({ isAgain }) => !isAgain)
  if (wrong !== undefined) {
    return {
      guarantee: statesGuarantee,
      what: `a row of ${wrong.date} says that it is the first one`,
    }
  }
  const found = rows.flatMap(({ spans }) => spans).reduce((total, count) => total + count, 0)
  const { occurrences, isBounded, count } = event
  if (isBounded ? found <= count : found === occurrences) return undefined
  const what = `${found} occurrences are archived of ${isBounded ? count : occurrences}`
  return { guarantee: countsGuarantee, what }
}
