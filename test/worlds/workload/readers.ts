/** Clients that read single events and the newest version. */
import type { Version } from '../../../src/storage/resource-version.ts'
import type { Random } from '../../support/random.ts'
import { failureOf } from '../checker/failures.ts'
import type { Operation } from '../checker/operations.ts'
import type { At, Clients } from './clients.ts'
import { keyOf } from './key-space.ts'

/** How often a client gives up, and after how long. */
const giveUpShare = 0.02
const giveUpMs = { least: 1, most: 8_000 }

export class Readers {
  readonly #clients: Clients

  constructor(clients: Clients) {
    this.#clients = clients
  }

  read(at: At, random: Random): void {
    const { keys } = this.#clients
    const kind = random.next()
    if (kind < 0.08) this.currentVersion(at, random)
    else if (kind < 0.55) this.get(at, keys.any(random), undefined, random)
    else if (kind < 0.8) this.get(at, keys.any(random), this.#clients.known(random) ?? 0, random)
    else this.get(at, keys.any(random), 0, random)
  }

  /** `notOlderThan` undefined: a consistent read; 0: any state. */
  get(at: At, path: string, notOlderThan: number | undefined, random: Random): void {
    const { checks } = this.#clients
    const { view, parts } = at
    if (notOlderThan !== undefined) checks.calm.observe(view, parts)
    const operation = checks.reads.begin(view, { kind: 'get', notOlderThan })
    const name = nameOf(notOlderThan)
    const signal = this.signal(operation, random)
    const options = { notOlderThan: notOlderThan as Version | undefined, signal }
    parts.storage.get(keyOf(path), options).then(
      (stored) => {
        if (!operation.isOpen) return
        checks.reads.saw(operation, path, stored)
        this.#clients.states.saw(path, stored)
        this.#clients.settled(operation, name, undefined, stored.version)
      },
      (error: unknown) => {
        if (!operation.isOpen) return
        const failure = failureOf(error)
        const isAnswer = failure.kind === 'missing'
        if (isAnswer) {
          checks.reads.saw(operation, path, undefined)
          if (notOlderThan === undefined) this.#clients.states.gone(path)
        } else checks.reads.failed(operation, failure, notOlderThan)
        this.#clients.settled(
          operation,
          isAnswer ? `${name} missing` : name,
          isAnswer ? undefined : failure,
        )
      },
    )
  }

  currentVersion({ view, parts }: At, random: Random): void {
    const { checks } = this.#clients
    const operation = checks.reads.begin(view, { kind: 'get' })
    parts.storage.currentVersion({ signal: this.signal(operation, random) }).then(
      (version) => {
        if (!operation.isOpen) return
        checks.reads.sawVersion(operation, version)
        this.#clients.settled(operation, 'current version', undefined, version)
      },
      (error: unknown) => {
        if (!operation.isOpen) return
        const failure = failureOf(error)
        checks.reads.failed(operation, failure, undefined)
        this.#clients.settled(operation, 'current version', failure)
      },
    )
  }

  /** The signal of a request: some clients give up. */
  signal(operation: Operation, random: Random): AbortSignal {
    const controller = new AbortController()
    if (random.chance(giveUpShare)) {
      const ms = random.chance(0.5) ? giveUpMs.least : random.between(giveUpMs.least, giveUpMs.most)
      operation.view.replica.after(ms, () => {
        if (!operation.isOpen) return
        operation.cancel()
        controller.abort()
      })
    }
    return controller.signal
  }
}

function nameOf(notOlderThan: number | undefined): string {
  if (notOlderThan === undefined) return 'get'
  return notOlderThan === 0 ? 'get any' : 'get not older'
}
