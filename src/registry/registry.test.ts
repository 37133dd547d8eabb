import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Event } from '../api/event.ts'
import { eventsGroup } from '../api/event-groups.ts'
import { StorageError } from '../storage/errors.ts'
import { writtenBody } from '../storage/plain-storage.fixture.ts'
import { versionOfChange } from '../storage/resource-version.ts'
import type { Change, EventKey, EventStorage, StoredEvent } from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import type { AdmittedWrite, Writer } from './admission/write-admission.ts'
import { EventRegistry, type RegistryOptions } from './registry.ts'

const event: Event = {
  metadata: { namespace: 'a', name: 'e' },
  eventTime: '2026-01-02T03:04:05.000006Z',
  reportingController: 'example.com/tester',
  reportingInstance: 'tester-0',
  action: 'Testing',
  reason: 'Tested',
  regarding: { kind: 'Pod', namespace: 'a', name: 'pod-0' },
  type: 'Normal',
}
const key: EventKey = { cluster: 'local', namespace: 'a', name: 'e' }
const written = { isDryRun: false, mayCreate: true, manager: () => 'tester' }

function registryOf(
  storage: Partial<EventStorage>,
  eventBytesMax?: number,
  admission?: RegistryOptions['admission'],
): EventRegistry {
  return new EventRegistry({
    admission,
    storage: storage as EventStorage,
    writes: storage as EventStorage,
    eventBytesMax,
    group: eventsGroup('events.k8s.io'),
    now: () => Date.UTC(2026, 0, 1, 12, 30, 45, 678),
  })
}

function storedAs(ofKey: EventKey, body: Buffer): StoredEvent {
  const version = versionOfChange(7, 3)
  const versionOffset = '{"metadata":{'.length
  return new StoredBody({ key: ofKey, body, version, versionOffset, writtenAtMs: 0 })
}

/** A registry with one stored event, and the results of its updates. */
async function existing(): Promise<{
  readonly registry: EventRegistry
  readonly changes: unknown[]
}> {
  const { body } = await registryOf({ create: async (at, bytes) => storedAs(at, bytes) }).create(
    { cluster: 'local', namespace: 'a' },
    event,
    written,
  )
  const changes: unknown[] = []
  const update = async (at: EventKey, change: Change): Promise<StoredEvent> => {
    const current = storedAs(at, body)
    const outcome = change(current)
    const next = writtenBody(outcome)
    changes.push(next === current.body ? 'unchanged' : (next ?? outcome))
    return next === undefined ? current : storedAs(at, next)
  }
  return { registry: registryOf({ update }), changes }
}

describe('an update or an apply that creates', () => {
  const missing = { update: async (_: EventKey, change: Change) => change(undefined) }

  test('rejects an invalid resourceVersion', async () => {
    const registry = registryOf(missing as unknown as Partial<EventStorage>)
    const sent = { ...event, metadata: { ...event.metadata, resourceVersion: 'abc' } }
    const refusal = { code: 400, message: /parsing "abc": invalid syntax$/ }
    await assert.rejects(registry.update(key, sent, written), refusal)
    await assert.rejects(
      registry.apply(key, () => ({ event: sent, managedFields: [] }), written),
      refusal,
    )
  })
})

describe('a generated name', () => {
  const unnamed: Event = { ...event, metadata: { namespace: 'a', generateName: 'pod-' } }
  const taken = (ofKey: EventKey): StorageError =>
    new StorageError({ kind: 'exists', message: 'taken', key: ofKey })

  test('is replaced by another one when it is taken', async () => {
    const tried: string[] = []
    const created = await registryOf({
      create: async (at, body) => {
        tried.push(at.name)
        if (tried.length < 4) throw taken(at)
        return storedAs(at, body)
      },
    }).create({ cluster: 'local', namespace: 'a' }, unnamed, written)
    assert.equal(new Set(tried).size, 4)
    const { name } = JSON.parse(created.body.toString()).metadata
    assert.equal(name, tried[3])
    assert.match(String(name), /^pod-[a-z0-9]{5}$/)
  })

  test('fails the create after some attempts, which may be retried', async () => {
    let tries = 0
    const registry = registryOf({
      create: async (at) => {
        tries += 1
        throw taken(at)
      },
    })
    await assert.rejects(
      registry.create({ cluster: 'local', namespace: 'a' }, unnamed, written),
      (error: Error) => {
        assert.match(error.message, /not able to generate a unique name/)
        return 'details' in error && JSON.stringify(error.details).includes('"retryAfterSeconds":1')
      },
    )
    assert.equal(tries, 8)
  })

  test('is not replaced when the outcome of the write is unknown', async () => {
    let tries = 0
    const registry = registryOf({
      create: async () => {
        tries += 1
        throw new StorageError({ kind: 'timeout', message: 'no response' })
      },
    })
    await assert.rejects(registry.create({ cluster: 'local', namespace: 'a' }, unnamed, written), {
      reason: 'Timeout',
    })
    assert.equal(tries, 1)
  })
})

describe('a new event', () => {
  test('has the current time, to the second, and a UID', async () => {
    const { body } = await registryOf({
      create: async (at, bytes) => storedAs(at, bytes),
    }).create({ cluster: 'local', namespace: 'a' }, event, written)
    const { metadata } = JSON.parse(body.toString())
    assert.equal(metadata.creationTimestamp, '2026-01-01T12:30:45Z')
    assert.match(
      metadata.uid,
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
  })
})

describe('an update', () => {
  test('accepts an empty resourceVersion, 0, or that of the stored event', async () => {
    const { registry } = await existing()
    const update = async (resourceVersion?: string): Promise<unknown> => {
      const metadata =
        resourceVersion === undefined ? event.metadata : { ...event.metadata, resourceVersion }
      return registry.update(key, { ...event, metadata }, written).then(
        () => 'done',
        ({ reason }) => reason,
      )
    }
    for (const sent of [undefined, '', '0', '00', '7003', '07003']) {
      assert.equal(await update(sent), 'done', sent)
    }
    assert.equal(await update('7002'), 'Conflict')
    assert.equal(await update('7'), 'Conflict')
    assert.equal(await update('seven'), 'BadRequest')
  })

  test('returns the stored bytes when nothing changes', async () => {
    const { registry, changes } = await existing()
    await registry.update(key, event, written)
    await registry.patch(key, ({ old }) => ({ ...old }), written)
    assert.deepEqual(changes, ['unchanged', 'unchanged'])
  })
})

describe('a delete', () => {
  test('returns 404 for an event that is not its target', async () => {
    const { registry, changes } = await existing()
    const options = { isDryRun: false, preconditions: {} }
    await assert.rejects(registry.delete(key, { ...options, isTarget: () => false }), {
      reason: 'NotFound',
    })
    assert.deepEqual(changes, [])
    await registry.delete(key, { ...options, isTarget: ({ fields }) => fields.reason === 'Tested' })
    assert.deepEqual(changes, ['remove'])
  })
})

// Difference from Kubernetes: smaller-events.
describe('the size limit of events', () => {
  const bytesMax = 1000
  const tooLarge = {
    code: 413,
    message: /^Request entity too large: the event would have \d+ bytes/,
  }
  const annotated = (length: number, more = {}): Event => ({
    ...event,
    metadata: { ...event.metadata, annotations: { long: 'n'.repeat(length) }, ...more },
  })

  /** A registry over a storage of one event, with `body` at first. */
  function limited(
    body?: Buffer,
    admission?: RegistryOptions['admission'],
  ): { registry: EventRegistry; stored: () => Buffer | undefined } {
    let stored = body
    const storage: Partial<EventStorage> = {
      create: async (at, bytes) => {
        stored = bytes
        return storedAs(at, bytes)
      },
      get: async (at) => storedAs(at, stored ?? assert.fail()),
      update: async (at, change) => {
        stored = writtenBody(change(stored && storedAs(at, stored))) ?? stored
        return storedAs(at, stored ?? Buffer.alloc(0))
      },
    }
    return { registry: registryOf(storage, bytesMax, admission), stored: () => stored }
  }

  test('applies to creates, updates and patches, and to dry runs', async () => {
    const { registry, stored } = limited()
    for (const isDryRun of [true, false]) {
      const options = { ...written, isDryRun }
      await assert.rejects(
        registry.create({ cluster: 'local', namespace: 'a' }, annotated(900), options),
        tooLarge,
      )
      assert.equal(stored(), undefined)
    }
    await assert.rejects(registry.update(key, annotated(900), written), tooLarge)
    await registry.create({ cluster: 'local', namespace: 'a' }, annotated(400), written)
    for (const isDryRun of [true, false]) {
      const options = { ...written, isDryRun }
      await assert.rejects(
        registry.patch(key, () => annotated(900), options),
        tooLarge,
      )
    }
    assert.ok((stored()?.length ?? 0) < bytesMax)
  })

  test('lets an event above the limit become smaller or be deleted', async () => {
    const guarded = (length: number): Event => annotated(length, { finalizers: ['a/b'] })
    const { body } = await registryOf({ create: async (at, bytes) => storedAs(at, bytes) }).create(
      { cluster: 'local', namespace: 'a' },
      guarded(3000),
      written,
    )
    const { registry, stored } = limited(body)
    await assert.rejects(
      registry.patch(key, () => guarded(3001), written),
      tooLarge,
    )
    await registry.patch(key, () => guarded(2000), written)
    const { isGone } = await registry.delete(key, { isDryRun: false, preconditions: {} })
    assert.equal(isGone, false)
    assert.match(String(stored()), /deletionTimestamp/)
  })

  test('is checked before a write is charged with all its bytes', async () => {
    const admitted: AdmittedWrite[] = []
    const admission = { admit: (_: Writer, write: AdmittedWrite) => admitted.push(write) }
    const { registry, stored } = limited(undefined, admission)
    const writer = { account: 'ada', payer: 'ada' }
    const options = { ...written, writer }
    await assert.rejects(
      registry.create({ cluster: 'local', namespace: 'a' }, annotated(900), options),
      tooLarge,
    )
    await registry.create({ cluster: 'local', namespace: 'a' }, annotated(400), options)
    const createdBytes = stored()?.length ?? 0
    await registry.patch(key, () => annotated(401), options)
    await registry.patch(key, () => annotated(401), options)
    assert.deepEqual(
      admitted.map(({ bytes, growth }) => [bytes, growth]),
      [
        [createdBytes + 135, createdBytes + 135],
        [createdBytes + 136, 1],
      ],
    )
  })

  test('refunds a failed write unless its outcome is unknown', async () => {
    let charged = 0
    const admission = {
      admit: (ada: Writer) => {
        if (ada.refund !== undefined) return
        charged++
        ada.refund = () => {
          charged--
        }
      },
    }
    const scope = { cluster: 'local', namespace: 'a' }
    for (const [kind, left] of [
      ['exists', 0],
      ['unavailable', 0],
      ['timeout', 1],
    ] as const) {
      const fail = () => Promise.reject(new StorageError({ kind, message: 'none' }))
      const update = async (_: EventKey, change: Change) => {
        change(undefined)
        return fail()
      }
      const registry = registryOf({ create: fail, update }, bytesMax, admission)
      const options = () => ({ ...written, writer: { account: 'ada', payer: 'ada' } })
      const generated = { ...event, metadata: { namespace: 'a', generateName: 'e-' } }
      for (const write of [
        () => registry.create(scope, event, options()),
        () => registry.create(scope, generated, options()),
        () => registry.update(key, event, options()),
      ]) {
        charged = 0
        await assert.rejects(write())
        assert.equal(charged, left, kind)
      }
    }
  })
})
