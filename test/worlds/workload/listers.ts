/**
 * Clients that list: page by page with continue tokens, the pages from any replica and with pauses
 * in between, in the order of keys or of time; whole lists in pieces; lists at an old version; lists
 * with selectors.
 */
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { decodeContinue } from '../../../src/registry/read/continue-token.ts'
import type { ListQuery } from '../../../src/registry/read/listing.ts'
import type { Version } from '../../../src/storage/resource-version.ts'
import type { EventScope, ListOrder } from '../../../src/storage/storage.ts'
import type { Random } from '../../support/random.ts'
import { failureOf } from '../checker/failures.ts'
import type { ListChain, SeenPage, Selection } from '../checker/lists.ts'
import type { Holder, Operation } from '../checker/operations.ts'
import { revisionIn } from '../checker/stored-text.ts'
import type { At, Clients } from './clients.ts'
import { namespaces, pathOf } from './key-space.ts'
import type { Readers } from './readers.ts'
import { RunMemory } from './run-memory.ts'
import { type Selector, Selectors } from './selectors.ts'

const limits = [1, 3, 10, 25, 50] as const
const orders = ['key', 'key', 'newest', 'oldest'] as const
/** Pages of one list at most; the client loses interest then. */
const pagesMax = 12
/** An old version that is remembered, to list at it later. */
const oldVersions = 6

interface Listed {
  readonly operation: Operation
  readonly scope: EventScope
  readonly selector: Selector | undefined
  readonly query: ListQuery
  readonly chain?: ListChain | undefined
}

interface OldVersion extends Holder {
  readonly version: number
  readonly until: number
}

export class Listers {
  readonly #clients: Clients
  readonly #readers: Readers
  readonly #selectors = new Selectors()
  readonly #runs: RunMemory
  #old: OldVersion[] = []

  constructor(clients: Clients, readers: Readers) {
    this.#clients = clients
    this.#readers = readers
    this.#runs = new RunMemory(clients.checks.reporter)
  }

  list(at: At, random: Random): void {
    const kind = random.next()
    if (kind < 0.55) this.#firstPage(at, random)
    else if (kind < 0.75) this.#selected(at, random)
    else if (kind < 0.87) this.#atOldVersion(at, random)
    else if (kind < 0.98) this.#namespace(at, random)
    else this.#whole(at, random)
  }

  #scope(random: Random): EventScope {
    return { cluster: 'local', namespace: random.chance(0.5) ? undefined : random.pick(namespaces) }
  }

  /** Begins a list; `position` is where it reads. */
  #begin(
    { view, parts }: At,
    random: Random,
    asked: {
      readonly scope: EventScope
      readonly selector?: Selector | undefined
      readonly limit: number | undefined
      readonly at?: number | undefined
      readonly after?: ListQuery['after']
      readonly afterMs?: number | undefined
      readonly order?: ListOrder | undefined
      readonly notOlderThan?: number | undefined
    },
  ): Listed {
    const { checks } = this.#clients
    const { scope, selector, limit, at, after, afterMs, order, notOlderThan } = asked
    if (notOlderThan !== undefined) checks.calm.observe(view, parts)
    const operation = checks.reads.begin(view, { kind: 'list', at, notOlderThan })
    const query: ListQuery = {
      lane: aLane(),
      scope,
      tokenScope: scope,
      selector: selector?.selector,
      limit,
      at: at as Version | undefined,
      after,
      afterMs,
      order,
      notOlderThan: notOlderThan as Version | undefined,
      signal: this.#readers.signal(operation, random),
    }
    return { operation, scope, selector, query }
  }

  #firstPage(at: At, random: Random): void {
    const scope = this.#scope(random)
    const order = random.pick(orders)
    const selector = random.chance(order === 'key' ? 0.15 : 0.5)
      ? this.#selectors.pick(random)
      : undefined
    const limit = random.pick(limits)
    const notOlderThan = random.chance(0.3) ? (this.#clients.known(random) ?? 0) : undefined
    const listed = this.#begin(at, random, { scope, selector, limit, order, notOlderThan })
    this.#run(at, listed, order === 'key' ? 'list' : `list ${order}`, (page, token) => {
      const selection = selectionOf(listed)
      const chain = this.#clients.checks.lists.sawFirst(listed.operation, selection, page)
      this.#remember(page.version, random)
      if (chain !== undefined && token !== undefined) {
        this.#continue(chain, { token, selector, random, pages: 1 })
      }
    })
  }

  /** Reads the next page some time later, anywhere; sometimes after etcd has been compacted. */
  #continue(
    chain: ListChain,
    next: {
      readonly token: string
      readonly selector: Selector | undefined
      readonly random: Random
      readonly pages: number
    },
  ): void {
    const { checks, world } = this.#clients
    const { token, random, pages, selector } = next
    const { compactionIntervalMs } = world.limits
    if (pages >= pagesMax || checks.truth.epoch !== chain.epoch) {
      checks.lists.endChain(chain)
      return
    }
    const kind = random.next()
    let ms = random.between(0, 20)
    if (kind < 0.03) ms = compactionIntervalMs * random.between(0.8, 2.2)
    else if (kind < 0.1) ms = random.between(1_000, 90_000)
    world.after(ms, () => {
      const target = world.replicas[this.#clients.anyReplica(random)]
      if (target?.parts === undefined || checks.truth.epoch !== chain.epoch) {
        checks.lists.endChain(chain)
        return
      }
      this.#clients.send(target.index, random.between(0, 2), (at) =>
        this.#nextPage(at, chain, { token, random, pages, selector }),
      )
    })
  }

  #nextPage(
    at: At,
    chain: ListChain,
    next: {
      readonly token: string
      readonly selector: Selector | undefined
      readonly random: Random
      readonly pages: number
    },
  ): void {
    const { checks } = this.#clients
    const { token, selector, random, pages } = next
    const scope = { cluster: 'local', namespace: chain.selection.namespace }
    const { version, ...place } = decodeContinue(scope, token)
    const limit = random.pick(limits)
    const listed = this.#begin(at, random, { scope, selector, limit, at: version, ...place })
    this.#run(at, { ...listed, chain }, 'next page', (page, nextToken) => {
      checks.lists.sawNext(listed.operation, chain, page)
      if (nextToken === undefined) checks.lists.endChain(chain)
      else this.#continue(chain, { token: nextToken, selector, random, pages: pages + 1 })
    })
  }

  #selected(at: At, random: Random): void {
    const scope = this.#scope(random)
    const selector = this.#selectors.pick(random)
    const notOlderThan = random.chance(0.5) ? 0 : undefined
    const listed = this.#begin(at, random, { scope, selector, limit: undefined, notOlderThan })
    this.#run(at, listed, 'list selected', (page) => {
      this.#clients.checks.lists.sawPage(listed.operation, selectionOf(listed), page)
    })
  }

  #namespace(at: At, random: Random): void {
    const scope = { cluster: 'local', namespace: random.pick(namespaces) }
    const notOlderThan = random.chance(0.5) ? 0 : undefined
    const listed = this.#begin(at, random, { scope, limit: undefined, notOlderThan })
    this.#run(at, listed, 'list namespace', (page) => {
      this.#clients.checks.lists.sawPage(listed.operation, selectionOf(listed), page)
    })
  }

  #atOldVersion(at: At, random: Random): void {
    const { checks, world } = this.#clients
    this.#dropOld(world.now())
    const old = this.#old[random.below(Math.max(1, this.#old.length))]
    if (old === undefined) {
      this.#firstPage(at, random)
      return
    }
    const scope = this.#scope(random)
    const listed = this.#begin(at, random, { scope, limit: random.pick(limits), at: old.version })
    this.#run(at, listed, 'list at a version', (page) => {
      checks.lists.sawExact(listed.operation, selectionOf(listed), { at: old.version, page })
    })
  }

  /** Versions are remembered for up to two intervals: some of them are compacted by then. */
  #remember(version: number, random: Random): void {
    const { checks, world } = this.#clients
    if (this.#old.length >= oldVersions || !random.chance(0.05)) return
    const ms = world.limits.compactionIntervalMs * random.between(0.1, 2)
    const until = world.now() + ms
    const old = { version, epoch: checks.truth.epoch, floor: revisionIn(version) - 1, until }
    this.#old.push(old)
    checks.hold(old)
  }

  #dropOld(now: number): void {
    const { checks } = this.#clients
    const gone = this.#old.filter(({ until, epoch }) => until < now || epoch !== checks.truth.epoch)
    if (gone.length === 0) return
    for (const old of gone) checks.release(old)
    this.#old = this.#old.filter((old) => !gone.includes(old))
  }

  /** Everything, in small pieces, with the runs that an encoder would have cached. */
  #whole(at: At, random: Random): void {
    const scope = this.#scope(random)
    const listed = this.#begin(at, random, { scope, limit: undefined })
    const whole = { ...listed, query: { ...listed.query, pieceItems: 40 } }
    this.#run(at, whole, 'list whole', (page) => {
      this.#clients.checks.lists.sawPage(listed.operation, selectionOf(listed), page)
    })
  }

  #run(
    { parts }: At,
    listed: Listed,
    name: string,
    onPage: (page: SeenPage, token: string | undefined) => void,
  ): void {
    const { checks } = this.#clients
    const { operation, query, chain } = listed
    const done = parts.lister.list(query).then(async (listing) => ({
      listing,
      items: await this.#runs.itemsOf(listing),
    }))
    done.then(
      ({ listing, items }) => {
        if (!operation.isOpen) return
        const { version, continueToken, remainingItemCount } = listing
        const after = query.after && pathOf(query.after)
        const isCut = continueToken !== undefined
        const remaining = remainingItemCount
        const { limit, order, afterMs } = query
        const page = { order, after, afterMs, limit, version, items, isCut, remaining }
        onPage(page, continueToken)
        this.#clients.settled(operation, name, undefined, version)
      },
      (error: unknown) => {
        if (!operation.isOpen) return
        const failure = failureOf(error)
        if (chain === undefined)
          checks.reads.failed(operation, failure, query.at ?? query.notOlderThan)
        else checks.lists.expired(operation, chain, failure)
        this.#clients.settled(operation, name, failure)
      },
    )
  }
}

function selectionOf({ scope, selector }: Listed): Selection {
  return { namespace: scope.namespace, filter: selector }
}
