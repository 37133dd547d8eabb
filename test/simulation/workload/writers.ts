/** Clients that write: to the storage directly, which is cheap, and through the registry. */
import type { Event } from '../../../src/api/event.ts'
import { StorageError } from '../../../src/storage/errors.ts'
import type { StoredEvent } from '../../../src/storage/storage.ts'
import type { Random } from '../../nightly/chaos/traffic/random.ts'
import { Declined, type Failure, failureOf } from '../invariants/failures.ts'
import { type ChangeRecord, describe } from '../invariants/lineage.ts'
import { facetsMax, tagOf } from '../invariants/stored-text.ts'
import type { Verb, WriteOperation } from '../invariants/write-operation.ts'
import { newEvent, remarked, storedBody } from './bodies.ts'
import type { At, Clients } from './clients.ts'
import { keyOf, pathOf } from './key-space.ts'

/** What a write returned. */
type Result = { readonly version: number | undefined; readonly body: Buffer }

/** Called after an acknowledged write, in the process of the replica. */
export type OnWritten = (path: string, version: number) => void

export class Writers {
  readonly #clients: Clients
  #fresh = 0

  constructor(clients: Clients) {
    this.#clients = clients
  }

  /** One write of any kind. */
  write(at: At, random: Random, onWritten: OnWritten): void {
    const { keys } = this.#clients
    const kind = random.next()
    if (kind < 0.3) {
      const isNew = !keys.isFull && random.chance(0.6)
      const path = isNew ? keys.fresh(random, ++this.#fresh) : keys.fixed(random)
      this.#create(at, path, random.below(facetsMax), onWritten)
    } else if (kind < 0.6) this.#update(at, keys.any(random), random, onWritten)
    else if (kind < 0.66) this.#inspect(at, keys.any(random))
    else if (kind < 0.8) this.#delete(at, keys.any(random), random)
    else this.#writeRegistry(at, random, onWritten)
  }

  #writeRegistry(at: At, random: Random, onWritten: OnWritten): void {
    const { keys } = this.#clients
    const kind = random.next()
    if (kind < 0.25) this.#registryCreate(at, random, onWritten)
    else if (kind < 0.5) this.#registryUpdate(at, keys.any(random), random, onWritten)
    else if (kind < 0.75) this.#registryPatch(at, keys.any(random), onWritten)
    else this.#registryDelete(at, keys.any(random), random)
  }

  #create({ view, parts }: At, path: string, facet: number, onWritten: OnWritten): void {
    const operation = this.#begin(view, 'create', path)
    const body = storedBody(path, operation.id, facet)
    operation.body = body
    this.#follow(operation, 'create', parts.storage.create(keyOf(path), body), onWritten)
  }

  #update({ view, parts }: At, path: string, random: Random, onWritten: OnWritten): void {
    const operation = this.#begin(view, 'update', path)
    const facet = random.below(facetsMax)
    const mayCreate = random.chance(0.5)
    const change = (current: StoredEvent | undefined): Buffer | undefined => {
      operation.decidesOn(current)
      if (current === undefined && !mayCreate) return undefined
      operation.body = storedBody(path, operation.id, facet)
      return operation.body
    }
    this.#follow(operation, 'update', parts.storage.update(keyOf(path), change), onWritten)
  }

  /** Writes nothing: the result is a consistent read. */
  #inspect({ view, parts }: At, path: string): void {
    const operation = this.#begin(view, 'update', path)
    const work = parts.storage.update(keyOf(path), (current) => {
      operation.decidesOn(current)
      return undefined
    })
    const { writes, reads } = this.#clients.checks
    work.then(
      (stored) => {
        if (!operation.isOpen) return
        writes.unchanged(operation)
        reads.saw(operation, path, stored)
        this.#clients.settled(operation, 'update without a change', undefined, stored.version)
      },
      (error: unknown) => this.#failed(operation, 'update without a change', error),
    )
  }

  #delete({ view, parts }: At, path: string, random: Random): void {
    const operation = this.#begin(view, 'delete', path)
    const key = keyOf(path)
    const required = random.chance(0.3) ? this.#knownVersion(path) : undefined
    const declines = random.chance(0.1)
    const guard = (current: StoredEvent): void => {
      operation.decidesOn(current)
      if (declines || (required !== undefined && required !== current.version)) {
        throw new Declined('the client wants another state')
      }
    }
    const { storage } = parts
    const work = random.chance(0.8)
      ? storage.delete(key, guard)
      : storage.update(key, (current) => {
          if (current !== undefined) guard(current)
          return 'remove'
        })
    this.#follow(operation, 'delete', work)
  }

  #registryCreate({ view, parts }: At, random: Random, onWritten: OnWritten): void {
    const { keys } = this.#clients
    const isGenerated = random.chance(0.5)
    const fresh = keys.isFull ? keys.fixed(random) : keys.fresh(random, ++this.#fresh)
    const { namespace, name } = keyOf(fresh)
    const operation = this.#begin(view, 'create', isGenerated ? undefined : fresh)
    const named = isGenerated ? { namespace, generateName: 'gen-' } : { namespace, name }
    const event = newEvent(named, operation.id, random.below(facetsMax))
    const work = parts.registry.create({ cluster: 'local', namespace }, event, { isDryRun: false })
    this.#follow(
      operation,
      isGenerated ? 'create a generated name' : 'registry create',
      work,
      onWritten,
    )
  }

  /** A replacement from the state that the client knows, with or without its version. */
  #registryUpdate({ view, parts }: At, path: string, random: Random, onWritten: OnWritten): void {
    const head = this.#clients.checks.truth.current.head(path)
    if (head === undefined || head.isDelete) return
    const operation = this.#begin(view, 'update', path)
    const old = JSON.parse(head.body.toString()) as Event
    const isExact = random.chance(0.5)
    if (isExact) operation.requires(head.version)
    const { deprecatedFirstTimestamp: _f, deprecatedLastTimestamp: _l, ...event } = old
    const sent = remarked(event, operation.id, head.facet)
    const { uid: _uid, ...metadata } = sent.metadata
    const work = parts.registry.update(
      keyOf(path),
      {
        ...sent,
        metadata: { ...metadata, ...(isExact ? { resourceVersion: `${head.version}` } : {}) },
      },
      { isDryRun: false, mayCreate: false, manager: () => 'simulation' },
    )
    const done = work.then(({ event: shown }) => shown)
    this.#follow(operation, 'registry update', done, onWritten)
  }

  #registryPatch({ view, parts }: At, path: string, onWritten: OnWritten): void {
    const operation = this.#begin(view, 'update', path)
    const work = parts.registry.patch(
      keyOf(path),
      ({ stored, old }) => {
        operation.decidesOn(stored)
        return remarked(old, operation.id, tagOf(stored.body).facet)
      },
      { isDryRun: false, manager: () => 'simulation' },
    )
    this.#follow(operation, 'registry patch', work, onWritten)
  }

  #registryDelete({ view, parts }: At, path: string, random: Random): void {
    const operation = this.#begin(view, 'delete', path)
    const version = random.chance(0.5) ? this.#knownVersion(path) : undefined
    if (version !== undefined) operation.requires(version)
    const work = parts.registry.delete(keyOf(path), {
      isDryRun: false,
      preconditions: version === undefined ? {} : { resourceVersion: `${version}` },
      isTarget: (current) => {
        operation.decidesOn(current)
        return true
      },
    })
    const done = work.then(({ event }) => event)
    this.#follow(operation, 'registry delete', done)
  }

  #knownVersion(path: string): number | undefined {
    const head = this.#clients.checks.truth.current.head(path)
    return head === undefined || head.isDelete ? undefined : head.version
  }

  #begin(view: At['view'], verb: Verb, path: string | undefined): WriteOperation {
    return this.#clients.checks.writes.begin(view, verb, path)
  }

  #follow(
    operation: WriteOperation,
    name: string,
    work: Promise<Result>,
    onWritten?: OnWritten,
  ): void {
    work.then(
      (result) => {
        // Its process has ended: the reply reached nobody.
        if (!operation.isOpen) return
        this.#clients.checks.writes.acknowledged(operation, result)
        const version = result.version ?? 0
        this.#clients.settled(operation, name, undefined, version)
        const path = operation.path ?? operation.committed?.path
        if (path !== undefined) onWritten?.(path, version)
      },
      (error: unknown) => this.#failed(operation, name, error),
    )
  }

  #failed(operation: WriteOperation, name: string, error: unknown): void {
    if (!operation.isOpen) return
    const { kind } = failureOf(error)
    // Only a replacement can contradict the state that it replaces.
    const isBug = kind === 'invalid' && name !== 'registry update'
    const failure: Failure = { kind: isBug ? 'unexpected' : kind, error }
    this.#clients.checks.writes.failed(operation, failure)
    this.#checkReason(operation, failure)
    this.#clients.settled(operation, name, failure)
  }

  /** A refusal because of the state of the event is a consistent read of that state. */
  #checkReason(operation: WriteOperation, { kind, error }: Failure): void {
    const { reads } = this.#clients.checks
    const { path } = operation
    if (path === undefined) return
    if (kind === 'missing') reads.saw(operation, path, undefined)
    else if (kind === 'exists' && error instanceof StorageError && error.current !== undefined) {
      reads.saw(operation, pathOf(error.current.key), error.current)
    } else if (kind === 'exists' || kind === 'precondition') {
      this.#checkRefusal(operation, path, { kind, error })
    }
  }

  /** If the state did not change while the call ran, the refusal must fit to exactly that state. */
  #checkRefusal(operation: WriteOperation, path: string, { kind, error }: Failure): void {
    const { truth, reporter } = this.#clients.checks
    const head = truth.current.head(path)
    if (operation.epoch !== truth.epoch || (head?.revision ?? 0) > operation.revision) return
    const isThere = head !== undefined && !head.isDelete
    const isWrong =
      kind === 'exists'
        ? !isThere
        : isThere && !isRefusalOf(operation, head, error instanceof Declined)
    if (!isWrong) return
    reporter.report(
      'refusals are based on the newest state',
      `a write of ${path} was refused as ${kind}, decided on version ${operation.basedVersion}, but all the time it was ${describe(head)}`,
      [operation.describe(), String(error)],
    )
  }
}

/** Whether a precondition could fail on this state. */
function isRefusalOf(operation: WriteOperation, head: ChangeRecord, isDeclined: boolean): boolean {
  const { basedVersion, basedOperation, required } = operation
  if (!isDeclined && required === head.version) return false
  if (operation.verb === 'update') return true
  return basedVersion === head.version && basedOperation === head.operation
}
