/**
 * Checks that this server wrote all keys under its prefix.
 *
 * An etcd that belongs to another program, most likely a Kubernetes API server, must not be
 * damaged: a single value of ours among its own breaks its lists. So nothing is written before all
 * keys under the prefix have been checked. The events are read anyway to fill the cache; outside of
 * them only the few control keys are read, whatever the size of the store. The check waits for an
 * etcd that is down, and writes are refused until it has passed.
 *
 * Control keys of a later version are not foreign: this one does not change them, so that it can
 * run beside that version during an upgrade, and after a rollback (control/control-scan.ts).
 */
import type { EtcdClient } from '../../etcd/client.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { pause } from '../../lib/abort.ts'
import { Backoff } from '../../lib/backoff.ts'
import type { Log } from '../../lib/log/log.ts'
import { StorageError } from '../errors.ts'
import type { BadValue } from '../stored-form.ts'
import { scanControlKeys } from './control/control-scan.ts'
import { controlRange, EventKeys, isMarkValue, outsideRanges } from './keys.ts'

const retryFirstMs = 100
const retryMostMs = 2_000
const retryAfterMs = 1_000

/**
 * Another program uses the prefix, or an earlier tidings did. Nothing was written: an operator has
 * to decide what to do.
 */
export class ForeignValueError extends Error {
  override readonly name = 'ForeignValueError'
}

function foreignValue(etcdKey: Buffer, prefix: string): ForeignValueError {
  return new ForeignValueError(
    `etcd holds ${JSON.stringify(etcdKey.toString())} under --etcd-prefix=${prefix}, which tidings did not write. ` +
      'Nothing was changed. Give tidings an etcd of its own or another --etcd-prefix; ' +
      'delete the key only if no other program uses this etcd',
  )
}

function tooMuch(excess: string, prefix: string): ForeignValueError {
  return new ForeignValueError(
    `etcd holds ${excess} under ${controlRange(prefix).key}, which is more than tidings writes there. ` +
      'Nothing was changed. Give tidings an etcd of its own or another --etcd-prefix',
  )
}

function oldLayout(etcdKey: Buffer, prefix: string): ForeignValueError {
  return new ForeignValueError(
    `etcd holds ${JSON.stringify(etcdKey.toString())} under --etcd-prefix=${prefix}: an earlier tidings wrote it, ` +
      `whose keys had no cluster. Keys are now ${prefix}/events/<cluster>/<namespace>/<name>. ` +
      'Nothing was changed. Start with another --etcd-prefix; ' +
      `the old events can be deleted with: etcdctl del --prefix ${prefix}/events/`,
  )
}

export interface PrefixCheckOptions {
  readonly client: Pick<EtcdClient, 'range' | 'scan'>
  readonly prefix: string
  readonly log: Log
}

export class PrefixCheck {
  readonly #options: PrefixCheckOptions
  readonly #failure = Promise.withResolvers<never>()
  #hasFailed = false
  #hasPassed = false
  #lastError: EtcdError | undefined

  constructor(options: PrefixCheckOptions) {
    this.#options = options
    // `run` handles it, but may not have been called yet.
    this.#failure.promise.catch(() => {})
  }

  /** Tells operators why nothing may be written; undefined once the check has passed. */
  get pending(): string | undefined {
    if (this.#hasPassed) return undefined
    const { prefix } = this.#options
    const reason = this.#lastError === undefined ? '' : `: ${this.#lastError.message}`
    return `the keys under --etcd-prefix=${prefix} have not been checked yet${reason}`
  }

  /** The error that clients get for a write before the check has passed. */
  refusal(): StorageError | undefined {
    const message = this.pending
    if (message === undefined) return undefined
    return new StorageError({
      kind: 'unavailable',
      message,
      reason: 'this replica has just started and has not read everything from etcd yet',
      retryAfterMs,
    })
  }

  /** A value was read that this server did not write. Ignored once the check has passed. */
  onForeign(etcdKey: Buffer): void {
    this.#fail(foreignValue(etcdKey, this.#options.prefix))
  }

  /** A value of ours was read under a key without a cluster. Ignored once the check has passed. */
  onOldLayout(etcdKey: Buffer): void {
    this.#fail(oldLayout(etcdKey, this.#options.prefix))
  }

  #fail(error: Error): void {
    if (this.#hasPassed) return
    this.#hasFailed = true
    this.#failure.reject(error)
  }

  /**
   * Passes when the events have been read, which resolves `listed`, and no foreign value was found
   * among them or outside of them. Resolves without passing when aborted. Rejects with a
   * ForeignValueError.
   */
  async run(listed: Promise<void>, signal: AbortSignal): Promise<void> {
    await Promise.race([
      this.#failure.promise,
      Promise.all([listed, this.#checkOutsideEvents(signal)]),
    ])
    this.#hasPassed = !this.#hasFailed && !signal.aborted
  }

  async #checkOutsideEvents(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
    while (!signal.aborted) {
      try {
        await this.#checkOutsideEventsOnce(signal)
        return
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error
        this.#lastError = error
        await pause(backoff.next(), signal)
      }
    }
  }

  async #checkOutsideEventsOnce(signal: AbortSignal): Promise<void> {
    const { client, prefix } = this.#options
    const outside = outsideRanges(prefix).map((range) => ({ ...range, limit: 1, keysOnly: true }))
    const [marks, ...found] = await Promise.all(
      [{ key: new EventKeys(prefix).mark }, ...outside].map((range) =>
        client.range(range, { signal }),
      ),
    )
    const [mark] = marks?.kvs ?? []
    const notMark = mark === undefined || isMarkValue(mark.value) ? undefined : mark
    const foreign = notMark ?? found.flatMap(({ kvs }) => kvs)[0]
    if (foreign === undefined) await this.#checkControlKeys(mark !== undefined, signal)
    else this.onForeign(foreign.key)
  }

  async #checkControlKeys(isMarked: boolean, signal: AbortSignal): Promise<void> {
    const { client, prefix, log } = this.#options
    const findings = await scanControlKeys({ client, prefix, isMarked, signal })
    if ('foreign' in findings) this.onForeign(findings.foreign)
    else if ('excess' in findings) this.#fail(tooMuch(findings.excess, prefix))
    else if (findings.firstUnknown !== undefined) {
      log.info('Unknown control keys are left unchanged', {
        etcdKey: findings.firstUnknown.toString(),
        count: findings.unknownCount,
      })
    }
  }
}

/** Handles values under keys of events that are not events. */
export function corruptValueHandler(
  check: PrefixCheck,
  keys: EventKeys,
  log: Log,
): (etcdKey: Buffer, value: BadValue) => void {
  const logValue = corruptValueLog(log)
  return (etcdKey, value) => {
    if (value.fault === 'foreign') check.onForeign(etcdKey)
    else if (keys.parse(etcdKey) === undefined) check.onOldLayout(etcdKey)
    logValue(etcdKey, value)
  }
}

/**
 * Logs the first five values that are not events, then the 10th, 100th and so on: a whole foreign
 * store under our prefix is one mistake, and must not produce a line for each of its keys.
 */
function corruptValueLog(log: Log): (etcdKey: Buffer, value: BadValue) => void {
  let count = 0
  return (etcdKey, { fault, what }) => {
    count += 1
    const isLogged = count <= 5 || /^10*$/.test(String(count))
    if (!isLogged) return
    log.error('A stored value is not an event', { etcdKey: etcdKey.toString(), fault, what, count })
  }
}
