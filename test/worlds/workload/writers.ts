/** Clients that write: to the storage directly, which is cheap, and through the registry. */
import type { Event } from '../../../src/api/event.ts'
import type { StoredEvent } from '../../../src/storage/storage.ts'
import type { Random } from '../../support/random.ts'
import { Declined, type Failure, failureOf } from '../checker/failures.ts'
import { facetsMax, tagOf } from '../checker/stored-text.ts'
import type { Verb, WriteOperation } from '../checker/write-operation.ts'
import { newEvent, remarked, storedBody } from './bodies.ts'
import type { At, Clients } from './clients.ts'
import { keyOf } from './key-space.ts'

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
      const isNew = keys.mayGrow && random.chance(0.6)
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
    this.#follow(operation, 'create', parts.writes.create(keyOf(path), body), onWritten)
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
    this.#follow(operation, 'update', parts.writes.update(keyOf(path), change), onWritten)
  }

  /** Writes nothing: the result is a consistent read. */
  #inspect({ view, parts }: At, path: string): void {
    const operation = this.#begin(view, 'update', path)
    const work = parts.writes.update(keyOf(path), (current) => {
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
    const { writes } = parts
    const work = random.chance(0.8)
      ? writes.delete(key, guard)
      : writes.update(key, (current) => {
          if (current !== undefined) guard(current)
          return 'remove'
        })
    this.#follow(operation, 'delete', work)
  }

  #registryCreate({ view, parts }: At, random: Random, onWritten: OnWritten): void {
    const { keys } = this.#clients
    const isGenerated = keys.mayGrow && random.chance(0.5)
    const fresh = keys.mayGrow ? keys.fresh(random, ++this.#fresh) : keys.fixed(random)
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
    const known = this.#clients.states.get(path)
    if (known === undefined) return
    const operation = this.#begin(view, 'update', path)
    const old = JSON.parse(known.body.toString()) as Event
    const isExact = random.chance(0.5)
    if (isExact) operation.requires(known.version)
    const { deprecatedFirstTimestamp: _f, deprecatedLastTimestamp: _l, ...event } = old
    const sent = remarked(event, operation.id, tagOf(known.body).facet)
    const { uid: _uid, ...metadata } = sent.metadata
    const work = parts.registry.update(
      keyOf(path),
      {
        ...sent,
        metadata: { ...metadata, ...(isExact ? { resourceVersion: `${known.version}` } : {}) },
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
    return this.#clients.states.get(path)?.version
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
        const path = operation.path ?? pathOf(result.body)
        if (operation.verb === 'delete') this.#clients.states.gone(path, version)
        else this.#clients.states.saw(path, { version, body: result.body })
        onWritten?.(path, version)
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
    this.#clients.checks.refusals.refused(operation, failure)
    if (kind === 'missing' && operation.path !== undefined) {
      this.#clients.states.gone(operation.path)
    }
    this.#clients.settled(operation, name, failure)
  }
}

/** The path of an event whose name the server has generated. */
function pathOf(body: Buffer): string {
  const { metadata } = JSON.parse(body.toString()) as Event
  return `${metadata.namespace}/${metadata.name}`
}
