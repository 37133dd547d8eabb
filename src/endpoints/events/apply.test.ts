import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { coreGroup, eventsGroup } from '../../api/event-groups.ts'
import { StatusError } from '../../api/status.ts'
import type { Caller } from '../../gate/gate.ts'
import { readTarget } from '../../gate/target.ts'
import type { Request } from '../../http/exchange.ts'
import { StorageError } from '../../storage/errors.ts'
import { writtenBody } from '../../storage/plain-storage.fixture.ts'
import { versionOfChange } from '../../storage/resource-version.ts'
import type {
  Change,
  EventKey,
  EventWrites,
  ReadStorage,
  StoredEvent,
} from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import { eventsService } from './events-service.ts'

const groups = { events: eventsGroup('events.k8s.io'), core: coreGroup }
const servedVersions = [groups.events.apiVersion, groups.core.apiVersion]
const paths = { events: '/apis/events.k8s.io/v1', core: '/api/v1' }
const APPLY = 'application/apply-patch+yaml'
const MERGE = 'application/merge-patch+json'

const whole = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'e' },
  eventTime: '2026-01-02T03:04:05.678901Z',
  action: 'Binding',
  reason: 'Scheduled',
  type: 'Normal',
  reportingController: 'example.com/scheduler',
  reportingInstance: 'scheduler-0',
  regarding: { kind: 'Pod', namespace: 'n', name: 'web-0' },
  note: 'x',
  series: { count: 2, lastObservedTime: '2026-01-02T03:04:05.678901Z' },
}
const more = { ...whole, series: { ...whole.series, count: 3 } }
const type = { apiVersion: whole.apiVersion, kind: whole.kind }

/** A storage of one event in memory. */
class OneEvent {
  stored: StoredEvent | undefined
  writes = 0
  /** Called between the first attempt of an update and the second. */
  interruption: (() => Promise<unknown>) | undefined

  get(): Promise<StoredEvent> {
    if (this.stored !== undefined) return Promise.resolve(this.stored)
    return Promise.reject(new StorageError({ kind: 'missing', message: 'there is none' }))
  }

  async update(key: EventKey, change: Change): Promise<StoredEvent> {
    const { interruption } = this
    if (interruption !== undefined) {
      this.interruption = undefined
      change(this.stored)
      await interruption()
    }
    const body = writtenBody(change(this.stored))
    if (body === undefined) throw new Error('unexpected removal of the event')
    if (this.stored !== undefined && body === this.stored.body) return this.stored
    this.writes++
    const version = versionOfChange(10 + this.writes, 0)
    const versionOffset = '{"metadata":{'.length
    this.stored = new StoredBody({ key, body, version, versionOffset, writtenAtMs: 0 })
    return this.stored
  }
}

interface Sent {
  readonly method?: string
  readonly to?: keyof typeof groups
  readonly type?: string
  readonly query?: string
  readonly body: unknown
  readonly userAgent?: string
}

class Api {
  readonly storage = new OneEvent()

  async send({ method = 'PATCH', to = 'events', type = APPLY, ...sent }: Sent) {
    const storage = this.storage as unknown as ReadStorage & EventWrites
    const path = `${paths[to]}/namespaces/n/events/e`
    const { body, query = 'fieldManager=one', userAgent } = sent
    const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
    const caller: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }
    const request = {
      method,
      path,
      query: new URLSearchParams(query),
      headers: {
        'content-type': type,
        ...(userAgent === undefined ? {} : { 'user-agent': userAgent }),
      },
      signal: new AbortController().signal,
      body: async () => bytes,
    } as Partial<Request> as Request
    const service = eventsService({ storage, writes: storage, group: groups[to], servedVersions })
    const handler = service.find(readTarget(request, 'local'))
    assert.ok(handler)
    const response = await handler(request, caller)
    const event = JSON.parse(Buffer.from(response.body as Uint8Array).toString())
    return { status: response.status, headers: response.headers, event }
  }

  async refusal(sent: Sent): Promise<StatusError> {
    const error = await this.send(sent).then(
      () => assert.fail('the request succeeded'),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof StatusError, String(error))
    return error
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a parsed response.
function owners(event: any): unknown {
  return event.metadata.managedFields?.map(
    (entry: { manager: string; operation: string; apiVersion: string }) =>
      `${entry.manager} ${entry.operation} ${entry.apiVersion}`,
  )
}

describe('an apply', () => {
  test('an apply creates the event, the next one changes it, a repeated one writes nothing', async () => {
    const api = new Api()
    assert.equal((await api.send({ body: whole })).status, 201)
    const changed = await api.send({ body: more })
    assert.equal(changed.status, 200)
    assert.equal(changed.event.series.count, 3)
    await api.send({ body: more })
    assert.equal(api.storage.writes, 2)
  })

  test('an apply accepts YAML', async () => {
    const yaml = Object.entries(whole).map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    const { status, event } = await new Api().send({ body: yaml.join('') })
    assert.equal(status, 201)
    assert.deepEqual(owners(event), ['one Apply events.k8s.io/v1'])
  })

  test('a dry run writes nothing', async () => {
    const api = new Api()
    const query = 'fieldManager=one&dryRun=All'
    const { status, event } = await api.send({ body: whole, query })
    assert.equal(status, 201)
    assert.equal(event.metadata.resourceVersion, undefined)
    assert.equal(api.storage.writes, 0)
  })

  test('an apply starts over from the newest state after a concurrent write', async () => {
    const api = new Api()
    await api.send({ body: whole })
    api.storage.interruption = () => {
      const body = { ...type, metadata: { labels: { b: '2' } } }
      return api.send({ body, query: 'fieldManager=two' })
    }
    const body = { ...whole, metadata: { labels: { a: '1' } } }
    const { event } = await api.send({ body })
    assert.deepEqual(event.metadata.labels, { a: '1', b: '2' })
    assert.deepEqual(owners(event), ['one Apply events.k8s.io/v1', 'two Apply events.k8s.io/v1'])
  })

  test('a duplicate field is a warning, or a 400 when the request is strict', async () => {
    const api = new Api()
    const body = JSON.stringify(whole).replace('"note":"x"', '"note":"w","note":"x"')
    const { headers, event } = await api.send({ body })
    assert.equal(headers?.['warning'], String.raw`299 - "duplicate field \"note\""`)
    assert.equal(event.note, 'x')
    const query = 'fieldManager=one&fieldValidation=Strict'
    const { code, message } = await api.refusal({ body, query })
    assert.equal(code, 400)
    assert.equal(message, 'error strict decoding patch: duplicate field "note"')
  })

  const refused: readonly (readonly [
    string,
    Sent & { readonly query?: string },
    number,
    RegExp,
  ])[] = [
    ['it has no fieldManager', { body: whole, query: '' }, 422, /fieldManager: Required value/],
    ['it cannot be decoded', { body: 'a: [' }, 400, /^error decoding patch: /],
    [
      'it is of another type',
      { body: { kind: 'Event' } },
      400,
      /^invalid object type: \/, Kind=Event$/,
    ],
    [
      'it names another event',
      { body: { ...whole, metadata: { name: 'f' } } },
      400,
      /^the name of the object \(f\) does not match the name on the URL \(e\)$/,
    ],
    ['a new event has no name', { body: { ...whole, metadata: {} } }, 400, /undeterminable/],
    [
      'it names another namespace',
      { body: { ...whole, metadata: { name: 'e', namespace: 'm' } } },
      400,
      /namespace of the provided object/,
    ],
    [
      'it has the uid of a deleted event',
      { body: { ...whole, metadata: { name: 'e', uid: 'u' } } },
      409,
      /^Operation cannot be fulfilled on events\.events\.k8s\.io "e": uid mismatch: the provided object specified uid u, and no existing object was found$/,
    ],
    ['the result is not valid', { body: { ...whole, type: 'Odd' } }, 422, /type: Invalid value/],
  ]
  for (const [why, sent, code, message] of refused) {
    test(`an apply is refused when ${why}`, async () => {
      const api = new Api()
      const error = await api.refusal(sent)
      assert.equal(error.code, code)
      assert.match(error.message, message)
      assert.equal(api.storage.writes, 0)
    })
  }

  test('an apply may omit the name of an existing event, and may have a resourceVersion', async () => {
    const api = new Api()
    await api.send({ body: whole })
    assert.equal((await api.send({ body: { ...whole, metadata: {} } })).status, 200)
    const body = { ...whole, metadata: { resourceVersion: '1' } }
    assert.match((await api.refusal({ body })).message, /the object has been modified/)
  })

  test('an apply in one group conflicts with owners of the other, named as in their group', async () => {
    const api = new Api()
    await api.send({ body: whole })
    const body = { apiVersion: 'v1', kind: 'Event', message: 'y' }
    const query = 'fieldManager=two'
    const { message } = await api.refusal({ to: 'core', body, query })
    assert.equal(message, 'Apply failed with 1 conflict: conflict with "one": .note')
    const { event } = await api.send({ to: 'core', body, query: `${query}&force=true` })
    assert.equal(event.message, 'y')
    assert.deepEqual(owners(event), ['one Apply events.k8s.io/v1', 'two Apply v1'])
    assert.deepEqual(event.metadata.managedFields[1].fieldsV1, { 'f:message': {} })
  })
})

describe('an update or a patch', () => {
  const put: Sent = { method: 'PUT', type: 'application/json', query: '', body: whole }

  test('an event that was never applied gets no owners', async () => {
    const api = new Api()
    assert.equal(owners((await api.send(put)).event), undefined)
    const managedFields = [
      {
        manager: 'm',
        operation: 'Update',
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:note': {} },
      },
    ]
    const body = { ...more, metadata: { name: 'e', managedFields } }
    assert.equal(owners((await api.send({ ...put, body })).event), undefined)
  })

  test('a client that changes an applied event owns the changed fields', async () => {
    const api = new Api()
    await api.send({ body: whole })
    const userAgent = 'kubectl/v1.36.0 (linux/amd64)'
    const { event } = await api.send({ ...put, body: more, userAgent })
    assert.deepEqual(owners(event), [
      'one Apply events.k8s.io/v1',
      'kubectl Update events.k8s.io/v1',
    ])
    const patch = {
      type: MERGE,
      query: 'fieldManager=patcher',
      body: { metadata: { labels: { a: '1' } } },
    }
    const patched = await api.send(patch)
    assert.deepEqual(patched.event.metadata.managedFields.at(-1).fieldsV1, {
      'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } },
    })
    const message = (await api.refusal({ body: whole })).message
    assert.match(message, /conflict with "kubectl" using events\.k8s\.io\/v1: \.series\.count$/)
  })

  for (const managedFields of [[], [{}]]) {
    test(`managedFields ${JSON.stringify(managedFields)} remove all owners`, async () => {
      const api = new Api()
      await api.send({ body: whole })
      const { event } = await api.send({
        type: MERGE,
        query: '',
        body: { metadata: { managedFields } },
      })
      assert.equal('managedFields' in event.metadata, false)
      const again = await api.send({ body: whole, query: 'fieldManager=two' })
      assert.deepEqual(owners(again.event), [
        'two Apply events.k8s.io/v1',
        'before-first-apply Update events.k8s.io/v1',
      ])
    })
  }
})

describe('an event from client-side apply of kubectl', () => {
  const name = 'kubectl.kubernetes.io/last-applied-configuration'
  const query = 'fieldManager=kubectl'
  const annotated = (last: object): object => ({
    ...whole,
    metadata: { name: 'e', annotations: { [name]: JSON.stringify(last) } },
  })

  test('kubectl takes over the fields that it applied, and its annotation is updated', async () => {
    const api = new Api()
    await api.send({ method: 'PUT', type: 'application/json', body: annotated(whole) })
    const { event } = await api.send({ body: more, query })
    assert.equal(event.series.count, 3)
    assert.deepEqual(JSON.parse(event.metadata.annotations[name]), more)
  })

  test('kubectl conflicts on fields that others have changed since', async () => {
    const api = new Api()
    await api.send({
      method: 'PUT',
      type: 'application/json',
      body: annotated({ ...type, series: { count: 9 } }),
    })
    const { message } = await api.refusal({ body: more, query })
    assert.match(message, /^Apply failed with 1 conflict: .*: \.series\.count$/)
  })
})
