/** What the archive must have, by the commits of etcd: the truth that its files are compared with. */
import type { ChangeRecord } from '../../worlds/checker/lineage.ts'

/** A change of an event that is not in the archive yet. */
interface Unarchived {
  readonly uid: string
  readonly version: number
  readonly at: number
  /** Undefined for a delete. */
  readonly put: Put | undefined
}

interface Put {
  readonly date: string
  readonly count: number
  /** How often it was observed since its last change. */
  readonly added: number
}

/** The newest state of an event in etcd. */
export interface Head {
  readonly uid: string
  readonly version: number
  readonly at: number
  readonly count: number
}

/** What the archive must have of an event. */
export interface ExpectedEvent {
  readonly path: string
  /** The version of the newest state of each day. */
  readonly days: Map<string, number>
  /** Of the newest state. */
  count: number
  /** In all rows together. */
  occurrences: number
  /** Not every change was read: then `count` bounds the occurrences. */
  isBounded: boolean
}

/** How the archiver got from one position to the next. */
export type Step = 'followed' | 'read-all' | 'skipped'

export class ArchiveModel {
  readonly heads: Map<string, Head> = new Map()
  readonly events: Map<string, ExpectedEvent> = new Map()
  readonly #paths = new Map<string, string>()
  /** By version. */
  #unarchived: Unarchived[] = []
  /** Events whose last state was never read, with its version. */
  readonly missed: Map<string, number> = new Map()

  /** The oldest change that is not archived. */
  get oldest(): Pick<Unarchived, 'version' | 'at'> | undefined {
    return this.#unarchived[0]
  }

  changed({ path, version, at, isDelete, body, writtenAtMs }: ChangeRecord): void {
    const before = this.heads.get(path)
    if (isDelete) {
      if (before === undefined) return
      this.heads.delete(path)
      this.#unarchived.push({ uid: before.uid, version, at, put: undefined })
      return
    }
    const { uid, count, lastSeenMs } = stateIn(body)
    const known = before?.uid === uid ? before.count : 0
    this.heads.set(path, { uid, version, at, count })
    this.#paths.set(uid, path)
    const put = { date: dateOf(lastSeenMs, writtenAtMs), count, added: count - known }
    this.#unarchived.push({ uid, version, at, put })
  }

  /** The position has moved. Returns the events whose rows must have changed. */
  moved(position: number, step: Step): ReadonlySet<string> {
    const end = this.#unarchived.findIndex(({ version }) => version > position)
    const passed = this.#unarchived.slice(0, end < 0 ? undefined : end)
    this.#unarchived = end < 0 ? [] : this.#unarchived.slice(end)
    if (step === 'followed') for (const change of passed) this.#follow(change)
    else this.#readAll(passed, step)
    return new Set(passed.map(({ uid }) => uid))
  }

  #follow({ uid, version, put }: Unarchived): void {
    if (put === undefined) return
    const event = this.#expected(uid)
    event.days.set(put.date, version)
    event.count = put.count
    event.occurrences += put.added
  }

  /** Only the last states are known, and only of events that were not deleted. */
  #readAll(changes: readonly Unarchived[], step: Step): void {
    const last = new Map(changes.map((change) => [change.uid, change]))
    for (const { uid, version, put } of last.values()) {
      if (put === undefined) {
        const state = changes.findLast((change) => change.uid === uid && change.put !== undefined)
        if (state !== undefined) this.missed.set(uid, state.version)
        continue
      }
      const event = this.#expected(uid)
      event.days.set(put.date, version)
      event.count = put.count
      event.occurrences = put.count
      event.isBounded ||= step === 'skipped'
    }
  }

  #expected(uid: string): ExpectedEvent {
    const known = this.events.get(uid)
    if (known !== undefined) return known
    const path = this.#paths.get(uid) ?? ''
    const event = { path, days: new Map(), count: 0, occurrences: 0, isBounded: false }
    this.events.set(uid, event)
    return event
  }
}

const day = 24 * 3_600_000

/** The UTC day of the event, or that of the write if the clocks differ by far. */
function dateOf(lastSeenMs: number, writtenAtMs: number): string {
  const isFar = lastSeenMs - writtenAtMs > day || writtenAtMs - lastSeenMs >= 31 * day
  return new Date(isFar ? writtenAtMs : lastSeenMs).toISOString().slice(0, 10)
}

interface State {
  readonly uid: string
  readonly count: number
  readonly lastSeenMs: number
}

/** Reads the few fields that matter, independently of production code. */
function stateIn(body: Buffer): State {
  const event = JSON.parse(body.toString())
  return {
    uid: event.metadata.uid,
    count: event.deprecatedCount,
    lastSeenMs: Date.parse(event.deprecatedLastTimestamp),
  }
}
