/**
 * Lists: every page is a part of exactly one state, and all pages of a list are parts of the same
 * one. A continue token is refused only when etcd has really compacted that state.
 */
import type { EventKey, ListOrder } from '../../../src/storage/storage.ts'
import type { Failure } from './failures.ts'
import type { Journal, SeenEvent } from './journal.ts'
import { type ChangeRecord, describe, historyOf, isSame, type Lineage } from './lineage.ts'
import type { Holder, Operation } from './operations.ts'
import { type CheckOptions, type ReadChecks, rangesOf } from './reads.ts'
import type { Reporter } from './reporter.ts'
import { isStateVersion, revisionIn, stateVersion } from './stored-text.ts'
import type { Truth } from './truth.ts'
import { type Walk, walkOf } from './walks.ts'

/** A selector: its text, for evidence, and what it selects. */
export interface Filter {
  readonly text: string
  readonly matches: (record: Pick<ChangeRecord, 'path' | 'namespace' | 'facet'>) => boolean
}

/** What a list selects. */
export interface Selection {
  /** Undefined: all. */
  readonly namespace: string | undefined
  /** Undefined: everything. */
  readonly filter?: Filter | undefined
}

/** Part of a list, as the client got it. */
export interface SeenPage {
  /** Undefined: by key. */
  readonly order?: ListOrder | undefined
  /** The path after which it begins. */
  readonly after: string | undefined
  /** When the event with that path was last seen; only for lists in the order of time. */
  readonly afterMs?: number | undefined
  /** Undefined: everything was asked for. */
  readonly limit: number | undefined
  readonly version: number
  readonly items: readonly SeenEvent[]
  /** The page has a continue token. */
  readonly isCut: boolean
  readonly remaining: number | undefined
}

/** A list whose next pages have to be of the same state. */
export interface ListChain extends Holder {
  readonly selection: Selection
  readonly order: ListOrder
  readonly version: number
}

/** The rest of a list is counted for one of this many pages: it takes longer than all other checks. */
const countEvery = 4

export class ListChecks {
  readonly #truth: Truth
  readonly #reads: ReadChecks
  readonly #reporter: Reporter
  readonly #journal: Journal
  readonly #chains = new Set<ListChain>()
  #pages = 0

  constructor({ truth, reporter, journal }: CheckOptions, reads: ReadChecks) {
    this.#truth = truth
    this.#reads = reads
    this.#reporter = reporter
    this.#journal = journal
  }

  get chains(): Iterable<ListChain> {
    return this.#chains
  }

  /** The first page of a list; returns a chain if there are more. */
  sawFirst(operation: Operation, selection: Selection, page: SeenPage): ListChain | undefined {
    this.sawPage(operation, selection, page)
    if (!page.isCut) return undefined
    const { version, order = 'key' } = page
    const epoch = operation.seenEpoch ?? this.#truth.epoch
    const chain = { selection, order, version, epoch, floor: revisionIn(version) }
    this.#chains.add(chain)
    return chain
  }

  /** A further page, read at the version of the first. */
  sawNext(operation: Operation, chain: ListChain, page: SeenPage): void {
    operation.close()
    const retained = this.#retain(page)
    this.#journal.add(() => this.#checkNext(operation, chain, retained), { version: page.version })
  }

  #retain(page: SeenPage): SeenPage {
    return { ...page, items: page.items.map((item) => this.#journal.retain(item)) }
  }

  #checkNext(operation: Operation, chain: ListChain, page: SeenPage): void {
    const lineage = this.#truth.lineage(chain.epoch)
    if (page.version !== chain.version) {
      this.#reporter.report(
        'pages of a list are of one state',
        `a page has version ${page.version}, the first page had ${chain.version}`,
        [operation.describe(), describeSelection(chain.selection)],
      )
      return
    }
    if (lineage === undefined) return
    const problem = this.#compare(lineage, chain.selection, page)
    if (problem === undefined || this.#isExcused(operation, chain)) return
    this.#reportPage(operation, chain.selection, { page, problem, lineage })
  }

  /** After a restore, a token of the lost history may be read in the new one. */
  #isExcused(operation: Operation, chain: ListChain): boolean {
    return chain.epoch !== this.#truth.epoch || operation.view.sinceEpoch !== this.#truth.epoch
  }

  endChain(chain: ListChain): void {
    this.#chains.delete(chain)
  }

  /** The token of a chain was refused. */
  expired(operation: Operation, chain: ListChain, failure: Failure): void {
    this.endChain(chain)
    // Only memory has the order of time, and it retains few earlier states.
    if (chain.order !== 'key' && failure.kind === 'compacted') operation.close()
    else this.#reads.failed(operation, failure, chain.version)
  }

  /** A page of any state that the operation may read. */
  sawPage(operation: Operation, selection: Selection, page: SeenPage): void {
    operation.close()
    const retained = this.#retain(page)
    this.#journal.add(
      () => {
        operation.seenEpoch = this.#checkPage(operation, selection, retained)?.epoch
      },
      { version: page.version },
    )
  }

  /** Returns the lineage that the page is from. */
  #checkPage(operation: Operation, selection: Selection, page: SeenPage): Lineage | undefined {
    const revision = revisionIn(page.version)
    const windows = this.#reads.windows(operation)
    let first: string | undefined
    for (const { lineage, from, to } of windows) {
      if (revision < from || revision > to) continue
      if (revision < lineage.horizon) return lineage
      const problem = this.#compare(lineage, selection, page)
      if (problem === undefined) return lineage
      first ??= problem
    }
    const lineage = this.#truth.current
    const problem = first ?? `its revision ${revision} is not between ${rangesOf(windows)}`
    this.#reportPage(operation, selection, { page, problem, lineage })
    return undefined
  }

  /** A list at an exact version. */
  sawExact(
    operation: Operation,
    selection: Selection,
    asked: { at: number; page: SeenPage },
  ): void {
    const { at, page } = asked
    const wanted = stateVersion(revisionIn(at))
    if (page.version === wanted) {
      this.sawPage(operation, selection, page)
      return
    }
    operation.close()
    this.#reporter.report(
      'lists at a version are of that state',
      `version ${at} was asked for, version ${page.version} was returned instead of ${wanted}`,
      [operation.describe(), describeSelection(selection)],
    )
  }

  /** What is wrong with the page as a part of the state at its version; undefined if nothing. */
  #compare(lineage: Lineage, selection: Selection, page: SeenPage): string | undefined {
    const { version, items, limit = Number.POSITIVE_INFINITY } = page
    if (!isStateVersion(version)) return 'its version is that of a change, not of a state'
    if (items.length > limit) return `it has ${items.length} items, more than its limit`
    const walk = walkOf(lineage, selection, { ...page, revision: revisionIn(version) })
    for (const item of items) {
      const expected = walk.next()
      if (expected !== undefined && isOf(expected, item.key) && isSame(expected, item)) continue
      const path = `${item.key.namespace}/${item.key.name}`
      if (expected === undefined) return `it has ${path}, after the end of that state`
      if (expected.path !== path) return `it has ${path} where ${describe(expected)} belongs`
      return `it has version ${item.version} of ${path} where ${describe(expected)} belongs, or other bytes`
    }
    const isCounted = this.#pages++ % countEvery === 0
    return compareEnd(walk, { ...selection, isCounted }, page)
  }

  #reportPage(
    operation: Operation,
    selection: Selection,
    found: { readonly page: SeenPage; readonly problem: string; readonly lineage: Lineage },
  ): void {
    const { page, problem, lineage } = found
    const path = /\S+\/\S+(?=:)/.exec(problem)?.[0]
    this.#reporter.report(
      'lists are exactly one state',
      `a list at version ${page.version} is not that state: ${problem}`,
      [
        operation.describe(),
        describeSelection(selection),
        `order ${page.order ?? 'key'}, after ${page.after ?? 'the beginning'}, limit ${page.limit ?? 'none'}, ${page.items.length} items, ${page.isCut ? 'to be continued' : 'complete'}, remaining ${page.remaining}`,
        `items: ${page.items
          .slice(0, 40)
          .map(({ key, version }) => `${key.namespace}/${key.name}@${version}`)
          .join(' ')}`,
        ...(path === undefined ? [] : historyOf(lineage, path)),
      ],
    )
  }
}

/** Compares without building the path, which would cost more than the comparison. */
function isOf({ path, namespace }: ChangeRecord, key: EventKey): boolean {
  if (path.length !== key.namespace.length + key.name.length + 1) return false
  return namespace === key.namespace && path.endsWith(key.name)
}

const nothingFollows = 'it has a continue token, but nothing follows'

/** What follows the last item: whether the list may end there, and the count of the rest. */
function compareEnd(
  walk: Walk,
  { filter, isCounted }: Selection & { readonly isCounted: boolean },
  page: SeenPage,
): string | undefined {
  const { isCut, limit, items, remaining, order = 'key' } = page
  if (!isCut) {
    const missing = walk.next()
    return missing && `it ends, but ${describe(missing)} follows`
  }
  if (items.length !== limit) return `it is cut after ${items.length} items, limit ${limit}`
  // With a selector, what remains may match or not.
  if (filter !== undefined) {
    return remaining === undefined ? undefined : 'it has a remaining count in spite of a selector'
  }
  // Further pages in the order of time do not know how many of what follows is in their scope.
  if (remaining === undefined && order !== 'key') return undefined
  if (!isCounted) return walk.next() === undefined ? nothingFollows : undefined
  const left = walk.rest()
  if (left === 0) return nothingFollows
  return remaining === left ? undefined : `it says that ${remaining} remain, but ${left} do`
}

export function describeSelection({ namespace, filter }: Selection): string {
  return `list of ${namespace ?? 'all namespaces'}, selector ${filter?.text ?? 'none'}`
}
