/**
 * The account: what the sweepers have deleted, and why.
 *
 * The counters of a process end with it, and the work moves from replica to replica. So the sweeper
 * stores the totals in one etcd key, which every replica reads. Only the leader writes it, always the
 * whole sum, so a write may be repeated. A sweeper that is killed loses the few seconds it counted
 * after its last write.
 *
 * The key also names the sweeper's policy: other replicas warn when theirs differs for longer than a
 * rollout takes.
 */
import type { Term } from '../../election/term.ts'
import type { EtcdClient } from '../../etcd/client.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { pause } from '../../lib/abort.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import type { EventKey } from '../../storage/storage.ts'
import { type AccountEntry, decodeAccount, encodeAccount, Totals } from './totals.ts'

const everyMs = 2_000
const callTimeoutMs = 1_000
/** How long replicas may have different policies while a change is rolled out. */
const rolloutMs = 120_000

export interface AccountOptions {
  readonly client: Pick<EtcdClient, 'range' | 'txn'>
  readonly key: string
  /** The leader's key: only the leader writes. */
  readonly leaderKey: string
  readonly replica: string
  /** The fingerprint of the current policy. */
  readonly policy: () => string
  /** Whether this namespace, or cluster, has stored events. Default: assumes so. */
  readonly isStored?: ((cluster: string, namespace: string | undefined) => boolean) | undefined
  readonly clock: Clock
  readonly log: Log
}

export class Account {
  readonly #options: AccountOptions
  readonly #key: Buffer
  readonly #leaderKey: Buffer
  /** Counts of this process since its start. */
  readonly own: Totals = new Totals()
  /** The totals last read or written. */
  #stored = new Totals()
  /** The policy in the key; undefined when there is none. */
  #storedPolicy: string | undefined
  /** Counts of this term that have not been written yet. */
  #unwritten = new Totals()
  #term: Term | undefined
  /** Whether this term has read the totals of the previous sweeper. */
  #isLoaded = false
  /** Whether the last write may not have been applied. */
  #isUnsure = false
  /** Calls run one at a time, so that none overtakes another. */
  #calls: Promise<void> = Promise.resolve()
  #differsSince: number | undefined
  #warnedPolicy: string | undefined

  constructor(options: AccountOptions) {
    this.#options = options
    this.#key = Buffer.from(options.key)
    this.#leaderKey = Buffer.from(options.leaderKey)
  }

  /** Counts of all replicas, past ones included; a few seconds out of date on other replicas. */
  get totals(): Totals {
    return this.#stored.plus(this.#unwritten)
  }

  expired(rule: string): void {
    this.own.add('expired', rule)
    this.#unwritten.add('expired', rule)
  }

  evicted(budget: string, { cluster, namespace }: EventKey): void {
    for (const totals of [this.own, this.#unwritten]) {
      totals.add('evicted', budget)
      totals.add('clusters', cluster)
      totals.add('namespaces', `${cluster}/${namespace}`)
    }
  }

  /** Makes this replica the writer until the end of the term. */
  begin(term: Term): void {
    this.#term = term
    this.#isLoaded = false
    this.#isUnsure = false
    this.#unwritten = new Totals()
  }

  /** Writes the remaining counts at the end of a term; the leader's lease must still exist. */
  async end(term: Term): Promise<void> {
    if (this.#term === term) await this.#attempt(() => this.#write(term))
    this.#term = undefined
    this.#unwritten = new Totals()
  }

  /** Periodically reads the account, or writes it while this replica leads, until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const term = this.#term
      await this.#attempt(() => (term?.isHeld() === true ? this.#write(term) : this.#read()))
      await pause(everyMs, signal)
    }
  }

  #attempt(work: () => Promise<void>): Promise<void> {
    this.#calls = this.#calls.then(work).catch((error) => {
      if (!(error instanceof EtcdError)) throw error
      this.#options.log.v(2, 'Could not read or write the account; will retry', { err: error })
    })
    return this.#calls
  }

  async #read(): Promise<void> {
    const { kvs } = await this.#options.client.range(
      { key: this.#key },
      { timeoutMs: callTimeoutMs },
    )
    const entry = kvs[0] && decodeAccount(kvs[0].value)
    this.#stored = entry?.totals ?? new Totals()
    this.#storedPolicy = entry?.policy
    if (entry !== undefined) this.#comparePolicy(entry)
  }

  async #write(term: Term): Promise<void> {
    const { client, replica, policy: policyOfNow } = this.#options
    if (!this.#isLoaded) await this.#read()
    if (this.#term !== term) return
    this.#isLoaded = true
    const policy = policyOfNow()
    const isWritten = this.#unwritten.isEmpty && !this.#isUnsure
    if (isWritten && policy === this.#storedPolicy) return
    this.#dropUnusedNames()
    const totals = this.#stored.plus(this.#unwritten)
    // Counts from here on belong to the next write.
    this.#stored = totals
    this.#unwritten = new Totals()
    this.#isUnsure = true
    const { succeeded } = await client.txn(
      {
        compare: [{ key: this.#leaderKey, target: 'modRevision', to: term.revision }],
        success: [
          { type: 'put', key: this.#key, value: encodeAccount({ replica, policy, totals }) },
        ],
      },
      { timeoutMs: callTimeoutMs },
    )
    this.#isUnsure = false
    if (succeeded) this.#storedPolicy = policy
    else this.#isLoaded = false
  }

  /** Names come and go: those without events make way for those that have some. */
  #dropUnusedNames(): void {
    const { isStored = () => true } = this.#options
    this.#stored.dropUnused('clusters', (cluster) => isStored(cluster, undefined))
    this.#stored.dropUnused('namespaces', (name) => {
      const [cluster = '', namespace] = name.split('/')
      return isStored(cluster, namespace)
    })
  }

  /** Each leader applies its own policy: if they differ, deletes depend on who leads. */
  #comparePolicy({ policy: there, replica: sweeper }: AccountEntry): void {
    const { policy, replica, clock, log } = this.#options
    const here = policy()
    if (there === here || sweeper === replica) {
      this.#differsSince = undefined
      return
    }
    this.#differsSince ??= clock.now()
    if (clock.now() < this.#differsSince + rolloutMs || this.#warnedPolicy === there) return
    this.#warnedPolicy = there
    log.warn('The sweeping replica has a different retention policy; use one file for all', {
      sweeper,
      there,
      here,
    })
  }
}
