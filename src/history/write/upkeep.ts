/**
 * Keeps the archive in shape, on the replica that writes it: merges the small files of a day, removes
 * what the policy no longer keeps, and deletes objects that no manifest names. All of it can be
 * interrupted at any time: a merged file counts only once the manifest names it.
 */
import { createHash } from 'node:crypto'
import type { Term } from '../../election/term.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { pause } from '../../lib/abort.ts'
import type { Log } from '../../lib/log/log.ts'
import type { HistoryClass } from '../../retention/history-policy.ts'
import type { Catalogue, CommitFence, Current } from '../catalogue.ts'
import { EngineError } from '../engine/engine-error.ts'
import type { Removal, WriteJobs } from '../engine/protocol.ts'
import type { Day, EventFile } from '../manifest.ts'
import type { FileCache } from '../store/file-cache.ts'
import { type ListedObject, type ObjectStore, StoreError } from '../store/object-store.ts'
import { InputFiles } from './input-files.ts'
import { checkNewest } from './newest-manifest.ts'
import type { Uploads } from './uploads.ts'

const DAY_MS = 86_400_000
const UNMERGED_MAX = 10_000
const EVERY_MS = 60_000
/** Files of a day that has ended are merged up to this size. */
const MERGED_BYTES_MAX = 256 * 1024 * 1024
/** As many files of about one size are merged while their day goes on. */
const TIER_FILES = 8
const TIER_BYTES = 1024 * 1024
const TIER_FACTOR = 8
/** Changes of a day may be archived late. */
const CLOSED_AFTER_MS = 2 * 3_600_000
/** Lists that began before may still read what was replaced. */
const UNNAMED_MS = DAY_MS
/** Unnamed objects that are looked at in one sweep: 10 MB. */
const UNNAMED_MAX = 50_000

export interface UpkeepOptions {
  readonly catalogue: Catalogue
  readonly store: ObjectStore
  readonly cache: FileCache
  readonly jobs: Pick<WriteJobs, 'merge'>
  readonly uploads: Uploads
  readonly classesOf: (cluster: string) => readonly HistoryClass[]
  readonly log: Log
  readonly everyMs?: number | undefined
  readonly wallTime?: (() => number) | undefined
}

export interface UpkeepStatus {
  readonly merges: number
  readonly removedRows: number
  readonly deletedObjects: number
  readonly failures: number
}

/** Files of one day that become one file. */
interface Plan {
  readonly day: Day
  readonly files: readonly EventFile[]
  readonly removals: readonly Removal[]
}

export class Upkeep {
  readonly #options: UpkeepOptions
  readonly #wallTime: () => number
  /** Lists of days whose files could not be merged. */
  readonly #unmerged = new Set<string>()
  #merges = 0
  #removedRows = 0
  #deletedObjects = 0
  #failures = 0
  #sweptAtMs = 0

  constructor(options: UpkeepOptions) {
    this.#options = options
    this.#wallTime = options.wallTime ?? Date.now
  }

  get status(): UpkeepStatus {
    return {
      merges: this.#merges,
      removedRows: this.#removedRows,
      deletedObjects: this.#deletedObjects,
      failures: this.#failures,
    }
  }

  /**
   * Works until the term is over. `unpublished` are the names of objects that the archiver has written,
   * or is about to write, and a later manifest will name. Rejects on a bug only.
   */
  async run(term: Term, fence: CommitFence, unpublished: ReadonlySet<string>): Promise<void> {
    const { everyMs = EVERY_MS, log } = this.#options
    while (term.isHeld()) {
      try {
        while (term.isHeld() && (await this.step(term, fence))) {
          // There may be more to do.
        }
        await this.deleteUnnamed(term, unpublished)
      } catch (error) {
        if (term.signal.aborted) return
        const isExpected =
          error instanceof StoreError || error instanceof EtcdError || error instanceof EngineError
        if (!isExpected) throw error
        this.#failures++
        log.warn('The upkeep of the archive failed; will retry', { err: error })
      }
      await pause(everyMs, term.signal)
    }
  }

  /** Merges the files of one day, or removes a day. Returns whether there was anything to do. */
  async step(term: Term, fence: CommitFence): Promise<boolean> {
    const { catalogue } = this.#options
    const current = await catalogue.read(term.signal)
    if (current === undefined) return false
    for (const day of current.manifest.days) {
      if (!term.isHeld()) return false
      if (this.#isExpired(day)) return this.#remove(current, day, { fence, term })
      const plan = this.#unmerged.has(day.list.name)
        ? undefined
        : await this.#planOf(day, term.signal)
      if (plan !== undefined) return this.#mergeOrSkip(current, plan, { fence, term })
    }
    return false
  }

  /** Whether every row of the day may go. */
  #isExpired({ cluster, seen }: Day): boolean {
    const keepMs = Math.max(...this.#options.classesOf(cluster).map((one) => one.keepMs))
    return seen[1] < this.#wallTime() - keepMs
  }

  async #planOf(day: Day, signal: AbortSignal): Promise<Plan | undefined> {
    const removals = this.#removalsOf(day)
    const key = removalKey(removals)
    if (day.files < 2 && (key === '' || key === day.removed)) return undefined
    const { files } = await this.#options.catalogue.files(day, signal)
    const outdated = files.find(({ removed = '' }) => removed !== key)
    if (key !== '' && outdated !== undefined) return { day, files: [outdated], removals }
    const merged = this.#isClosed(day) ? smallest(files) : firstTier(files)
    return merged.length < 2 ? undefined : { day, files: merged, removals }
  }

  #isClosed({ date }: Day): boolean {
    return Date.parse(date) + DAY_MS + CLOSED_AFTER_MS < this.#wallTime()
  }

  /** What the policy removes from this day. Whole days, so that a file is rewritten once per class. */
  #removalsOf({ cluster, date, seen }: Day): readonly Removal[] {
    const endMs = Date.parse(date) + DAY_MS
    const removals = this.#options.classesOf(cluster).map(({ requires, keepMs }) => ({
      requires,
      seenBeforeMs: endMs < this.#wallTime() - keepMs ? Math.max(endMs, seen[1] + 1) : 0,
    }))
    return removals.some(({ seenBeforeMs }) => seenBeforeMs > 0) ? removals : []
  }

  async #remove(current: Current, day: Day, under: Under): Promise<boolean> {
    const { files } = await this.#options.catalogue.files(day, under.term.signal)
    const removed = new Set(files.map(({ name }) => name))
    if (!(await this.#commit(current, { added: [], removed }, under))) return true
    this.#removedRows += day.rows
    this.#options.log.info('Removed a day from the archive', {
      cluster: day.cluster,
      date: day.date,
    })
    return true
  }

  /** A day whose files cannot be merged must not keep others from being merged, or from expiring. */
  async #mergeOrSkip(current: Current, plan: Plan, under: Under): Promise<boolean> {
    try {
      return await this.#merge(current, plan, under)
    } catch (error) {
      if (!(error instanceof EngineError) || under.term.signal.aborted) throw error
      this.#failures++
      if (this.#unmerged.size >= UNMERGED_MAX) this.#unmerged.clear()
      this.#unmerged.add(plan.day.list.name)
      const { cluster, date } = plan.day
      this.#options.log.warn('Could not merge files of the archive; leaving them as they are', {
        cluster,
        date,
        err: error,
      })
      return true
    }
  }

  async #merge(current: Current, { day, files, removals }: Plan, under: Under): Promise<boolean> {
    const { cache, jobs, uploads } = this.#options
    const { signal } = under.term
    using inputs = new InputFiles()
    for (const file of files) await inputs.add(cache, day, file, signal)
    const { written, removedRows } = await jobs.merge(day, inputs.files, removals, { signal })
    const added = written === undefined ? [] : [withRemoved(written, removalKey(removals))]
    try {
      await uploads.all(added, signal)
    } catch (error) {
      await uploads.discard(added)
      throw error
    }
    const edit = { added, removed: new Set(files.map(({ name }) => name)) }
    if (!(await this.#commit(current, edit, under))) return true
    this.#merges++
    this.#removedRows += removedRows
    return true
  }

  /** Whether it was committed. Otherwise the next step finds out what is left to do. */
  async #commit(
    current: Current,
    edit: Pick<Parameters<Catalogue['commit']>[1], 'added' | 'removed'>,
    { fence, term }: Under,
  ): Promise<boolean> {
    const { catalogue } = this.#options
    let base = current
    while (term.isHeld()) {
      const outcome = await catalogue.commit(base, edit, { signal: term.signal, fence })
      if (outcome !== 'moved') return outcome !== 'lost'
      const next = await catalogue.read(term.signal)
      // No commit came first: a file is gone.
      if (next === undefined || next.modRevision === base.modRevision) return false
      base = next
    }
    return false
  }

  /** Once a day, and soon after an election. */
  async deleteUnnamed(term: Term, unpublished: ReadonlySet<string>): Promise<void> {
    const { catalogue, store } = this.#options
    const { signal } = term
    const now = this.#wallTime()
    if (now - this.#sweptAtMs < UNNAMED_MS / 4) return
    const current = await catalogue.read(signal)
    if (current === undefined) return
    // The files of a newer manifest, which this etcd does not know, are not unnamed.
    await checkNewest(store, current.pointer, signal)
    const old = await this.#oldObjects(now, signal)
    // In this order: what is no longer unpublished by then is named.
    const spared = new Set(unpublished)
    const named = await this.#named(signal)
    for (const name of named === undefined ? [] : old) {
      if (!term.isHeld()) return
      if (named?.has(name) || spared.has(name)) continue
      await store.delete(name, { signal })
      this.#deletedObjects++
    }
    this.#sweptAtMs = now
  }

  /**
   * Unnamed objects that are a day older than the newest one: by the clock of the store alone, since a
   * wrong clock of this replica must not make what was written a moment ago old.
   */
  async #oldObjects(now: number, signal: AbortSignal): Promise<readonly string[]> {
    const named = await this.#named(signal)
    const unnamed: ListedObject[] = []
    let newestMs = 0
    for await (const object of this.#options.store.list('', { signal })) {
      newestMs = Math.max(newestMs, object.modifiedAtMs)
      if (named?.has(object.name) || !isOurs(object.name)) continue
      if (unnamed.length < UNNAMED_MAX) unnamed.push(object)
    }
    const before = Math.min(now, newestMs) - UNNAMED_MS
    return unnamed.filter(({ modifiedAtMs }) => modifiedAtMs < before).map(({ name }) => name)
  }

  /** Undefined when there is no manifest. */
  async #named(signal: AbortSignal): Promise<ReadonlySet<string> | undefined> {
    const { catalogue } = this.#options
    const current = await catalogue.read(signal)
    return current && namesIn(current, catalogue, signal)
  }
}

interface Under {
  readonly fence: CommitFence
  readonly term: Term
}

/** Everything that a manifest names, and what it named until recently. */
export async function namesIn(
  { pointer, manifest }: Pick<Current, 'pointer' | 'manifest'>,
  catalogue: Pick<Catalogue, 'files'>,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const names = new Set([pointer.manifest.name, ...manifest.removed.map(({ name }) => name)])
  for (const day of manifest.days) {
    names.add(day.list.name)
    for (const { name, rollup } of (await catalogue.files(day, signal)).files) {
      names.add(name)
      names.add(rollup.name)
    }
  }
  return names
}

/** Other programs may store objects beside the archive. */
function isOurs(name: string): boolean {
  return /^(cluster=|rollups\/cluster=|manifests\/)/.test(name)
}

/** Identifies what was removed from a file. Empty: nothing. */
function removalKey(removals: readonly Removal[]): string {
  if (removals.length === 0) return ''
  return createHash('sha256').update(JSON.stringify(removals)).digest('hex').slice(0, 16)
}

function withRemoved<File extends { readonly file: EventFile }>(written: File, key: string): File {
  return key === '' ? written : { ...written, file: { ...written.file, removed: key } }
}

/** As many files as fit into one, the smallest first. */
function smallest(files: readonly EventFile[]): readonly EventFile[] {
  const sorted = [...files].sort((one, other) => one.bytes - other.bytes)
  let bytes = 0
  return sorted.filter((file) => {
    bytes += file.bytes
    return bytes <= MERGED_BYTES_MAX
  })
}

/** The files of the first size of which there are enough: each is merged a few times a day. */
function firstTier(files: readonly EventFile[]): readonly EventFile[] {
  const tiers = new Map<number, EventFile[]>()
  for (const file of files) {
    if (file.bytes >= MERGED_BYTES_MAX / TIER_FILES) continue
    const tier = Math.max(0, Math.floor(Math.log(file.bytes / TIER_BYTES) / Math.log(TIER_FACTOR)))
    tiers.set(tier, [...(tiers.get(tier) ?? []), file])
  }
  const full = [...tiers].sort(([one], [other]) => one - other)
  return full.find(([, tier]) => tier.length >= TIER_FILES)?.[1] ?? []
}
