import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventsGroup } from '../../api/event-groups.ts'
import { StatusError } from '../../api/status.ts'
import type { Caller } from '../../gate/gate.ts'
import { readTarget } from '../../gate/target.ts'
import type { Request, Response } from '../../http/exchange.ts'
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
import { statusResponse } from '../response/respond.ts'
import { eventsService } from './events-service.ts'

const event = {
  metadata: { name: 'e', namespace: 'n', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' },
  eventTime: '2026-01-02T03:04:05.678901Z',
  action: 'Binding',
  reason: 'Scheduled',
  type: 'Normal',
  reportingController: 'example.com/scheduler',
  reportingInstance: 'scheduler-0',
  regarding: { kind: 'Pod', namespace: 'n', name: 'web-0' },
}

function storedAs(key: EventKey, body: Buffer): StoredEvent {
  const versionOffset = '{"metadata":{'.length
  const version = versionOfChange(7, 0)
  return new StoredBody({ key, body, version, versionOffset, writtenAtMs: 0 })
}

/** A storage in which every key has that event. */
const storage: Pick<EventWrites, 'update' | 'create'> = {
  create: async (key, body) => storedAs(key, body),
  update: async (key, change: Change) => {
    const body = writtenBody(change(storedAs(key, Buffer.from(JSON.stringify(event)))))
    assert.ok(body)
    return storedAs(key, body)
  },
}

interface Sent {
  readonly method?: string
  readonly type?: string
  readonly query?: string
  /** Anything but a string is sent as JSON. */
  readonly body: unknown
  readonly writes?: Partial<EventWrites>
}

interface Received {
  readonly status: number
  readonly warnings: readonly string[]
  readonly message: string
}

const MERGE = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'
const STRATEGIC = 'application/strategic-merge-patch+json'

async function send(sent: Sent): Promise<Received> {
  const { method = 'PATCH', type = MERGE, query = '', body, writes = storage } = sent
  const collection = '/apis/events.k8s.io/v1/namespaces/n/events'
  const path = method === 'POST' ? collection : `${collection}/e`
  const service = eventsService({
    storage: {} as ReadStorage,
    writes: writes as EventWrites,
    group: eventsGroup('events.k8s.io'),
  })
  const caller: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }
  const request = {
    method,
    path,
    query: new URLSearchParams(query),
    headers: { 'content-type': type },
    signal: new AbortController().signal,
    body: async () => Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  } as Partial<Request> as Request
  const response = await responseTo(request, () =>
    service.find(readTarget(request, 'local'))?.(request, caller),
  )
  const warnings = response.headers['warning']
    ?.split(', 299')
    .map((text) => text.replaceAll('\\', ''))
  return {
    status: response.status,
    warnings: warnings?.map((text) => text.replace(/^(299)? - "(.*)"$/, '$2')) ?? [],
    message: JSON.parse(Buffer.from(response.body as Buffer).toString()).message,
  }
}

async function responseTo(
  request: Request,
  respond: () => Promise<Response> | undefined,
): Promise<Response> {
  try {
    const response = await respond()
    assert.ok(response)
    return response
  } catch (error) {
    assert.ok(error instanceof StatusError)
    return statusResponse(request, error)
  }
}

describe('duplicate fields of a patch', () => {
  const labels = '{"metadata":{"labels":{"a":"1","a":"2"}},"metadata":{"labels":{"b":"1","b":"2"}}}'

  test('a warning names the path of a duplicate field', async () => {
    for (const type of [MERGE, STRATEGIC]) {
      const { status, warnings } = await send({ type, body: labels })
      assert.equal(status, 200)
      assert.deepEqual(warnings, [
        'duplicate field "metadata"',
        'duplicate field "metadata.labels.b"',
      ])
    }
    const operations = '[{"op":"test","op":"add","path":"/foo","value":{"x":{"y":1,"y":2}}}]'
    const { warnings } = await send({ type: JSON_PATCH, body: operations })
    assert.deepEqual(warnings, [
      'json patch duplicate field "[0].op"',
      'json patch duplicate field "[0].value.x.y"',
      'unknown field "foo"',
    ])
  })

  test('a duplicate field that is also unknown is reported once', async () => {
    const body = '[{"op":"add","path":"/note","value":"x","foo":1,"foo":2}]'
    const { status, message } = await send({
      type: JSON_PATCH,
      body,
      query: 'fieldValidation=Strict',
    })
    assert.equal(status, 422)
    assert.match(message, /strict decoding error: json patch unknown field "\[0\].foo"$/)
  })

  test('a strict request is refused with the first hundred duplicate fields, each truncated', async () => {
    const name = 'x'.repeat(1_000)
    const repeated = Array.from({ length: 400 }, (_, index) => `"${index}${name}":1`)
    const inner = `{${[...repeated, ...repeated].join(',')}}`
    const body = `${`{"${name}":`.repeat(150)}${inner}${'}'.repeat(150)}`
    const { status, message } = await send({ body, query: 'fieldValidation=Strict' })
    assert.equal(status, 422)
    assert.equal(message.match(/duplicate field/g)?.length, 100)
    assert.ok(message.length < 60_000, `${message.length} characters`)
  })
})

describe('warnings', () => {
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' }
  const metadata = { ownerReferences: [owner, owner] }
  const rest =
    'API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u1'

  test('a warning about duplicate owners says when they were found', async () => {
    const patched = await send({ body: { metadata } })
    assert.deepEqual(patched.warnings, [
      `.metadata.ownerReferences contains duplicate entries after mutating admission happens; ${rest}`,
    ])
    const body = { ...event, metadata: { name: 'e', ...metadata } }
    const created = await send({ method: 'POST', type: 'application/json', body })
    assert.equal(created.status, 201)
    assert.deepEqual(created.warnings, [
      `.metadata.ownerReferences contains duplicate entries; ${rest}`,
    ])
  })

  test('an error response has the warnings, too, once the body has been read', async () => {
    const warnings = ['unknown field "foo"']
    const body = { ...event, foo: 1, note: 'n'.repeat(1_025) }
    for (const method of ['POST', 'PUT', 'PATCH']) {
      const type = method === 'PATCH' ? MERGE : 'application/json'
      const refused = await send({ method, type, body })
      assert.deepEqual([refused.status, refused.warnings], [422, warnings], method)
      const misplaced = { ...event, foo: 1, metadata: { ...event.metadata, namespace: 'other' } }
      const misled = await send({ method, type, body: misplaced })
      assert.deepEqual([misled.status, misled.warnings], [400, warnings], method)
      const strict = await send({ method, type, body, query: 'fieldValidation=Strict' })
      assert.deepEqual(strict.warnings, [], method)
    }
  })
})

describe('warnings of a patch that cannot be applied', () => {
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    [
      JSON_PATCH,
      '[{"op":"add","op":"test","path":"/note","value":"no"}]',
      ['json patch duplicate field "[0].op"'],
    ],
    [
      JSON_PATCH,
      '[{"op":"add","op":"frob","path":"/note"}]',
      ['json patch duplicate field "[0].op"'],
    ],
    [MERGE, '{"note":1,"note":2}', ['duplicate field "note"']],
    [STRATEGIC, '{"note":"x","note":["y"]}', ['duplicate field "note"']],
  ]
  for (const [type, body, warnings] of cases) {
    test(`failed-patches-warn: ${body}`, async () => {
      const refused = await send({ type, body })
      assert.ok(refused.status >= 400, `${refused.status}`)
      assert.deepEqual(refused.warnings, warnings)
      for (const query of ['fieldValidation=Strict', 'fieldValidation=Ignore']) {
        const silent = await send({ type, body, query })
        assert.deepEqual([silent.status, silent.warnings], [refused.status, []])
        assert.equal(silent.message, refused.message)
      }
    })
  }
})

describe('too many values', () => {
  const many = `[${'1,'.repeat(80_000)}1]`
  const applied = 'application/apply-patch+yaml'

  test('smaller-bodies: an event, a patch or delete options with too many values are a 413', async () => {
    const json = 'application/json'
    for (const sent of [
      { method: 'POST', type: json, body: `{"foo":${many}}` },
      { method: 'POST', type: 'application/yaml', body: `{"foo":${many}}` },
      { method: 'PUT', type: json, body: `{"foo":${many}}` },
      { method: 'PATCH', type: MERGE, body: `{"foo":${many}}` },
      { method: 'PATCH', type: STRATEGIC, body: `{"foo":${many}}` },
      { method: 'PATCH', type: applied, body: `{"foo":${many}}`, query: 'fieldManager=x' },
      { method: 'DELETE', type: json, body: `{"foo":${many}}` },
    ]) {
      const { status, message } = await send(sent)
      const which = `${sent.method} ${sent.type}`
      assert.equal(status, 413, which)
      assert.equal(message, 'Request entity too large: limit is 20000 names and values', which)
    }
    const { status, message } = await send({ type: JSON_PATCH, body: many })
    assert.equal(status, 413)
    assert.match(message, /limit is 80000 names and values/)
    const far = `{"op":"test","path":"${'/a'.repeat(100)}"},`
    const paths = await send({ type: JSON_PATCH, body: `[${far.repeat(1000)}{"path":"/a"}]` })
    assert.equal(paths.status, 413)
    assert.match(paths.message, /names in the paths of a JSON patch is 100000/)
  })

  test('smaller-bodies: a body that is nested too deeply is a 400', async () => {
    const body = `{"foo":${'['.repeat(201)}${']'.repeat(201)}}`
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const type = method === 'PATCH' ? MERGE : 'application/json'
      assert.equal((await send({ method, type, body })).status, 400, method)
    }
  })
})

describe('a patch of a missing event', () => {
  const missing = {
    update: async (_: EventKey, change: Change) => {
      change(undefined)
      throw new Error('a patch creates no event')
    },
  }

  test('a body that is not JSON is a 400, and any other patch a 404', async () => {
    for (const type of [MERGE, JSON_PATCH, STRATEGIC]) {
      const refused = await send({ type, body: '[{', writes: missing })
      assert.equal(refused.status, 400, refused.message)
      assert.match(refused.message, /^error decoding patch: /)
      const senseless = await send({ type, body: '"x"', writes: missing })
      assert.equal(senseless.status, 404, senseless.message)
    }
  })
})

describe('a patch of managedFields', () => {
  test('a JSON patch may remove managedFields that an event does not have', async () => {
    const remove = (path: string): object => ({ op: 'remove', path })
    const { status } = await send({ type: JSON_PATCH, body: [remove('/metadata/managedFields')] })
    assert.equal(status, 200)
    const both = [remove('/metadata/managedFields'), remove('/metadata/managedFields')]
    assert.equal((await send({ type: JSON_PATCH, body: both })).status, 422)
    assert.equal((await send({ type: JSON_PATCH, body: [remove('/metadata/labels')] })).status, 422)
  })
})

describe('a zero deprecatedFirstTimestamp', () => {
  const zero = { deprecatedFirstTimestamp: '0001-01-01T00:00:00Z' }

  test('it counts as set in a new event', async () => {
    const { status, message } = await send({
      method: 'POST',
      type: 'application/json',
      body: { ...event, ...zero },
    })
    assert.equal(status, 422)
    assert.match(message, /deprecatedFirstTimestamp: Invalid value: "": needs to be unset$/)
  })

  test('it counts as unset in a change', async () => {
    assert.equal((await send({ body: zero })).status, 200)
    const later = { ...zero, deprecatedLastTimestamp: '2026-01-01T00:00:00Z' }
    const { status, message } = await send({ body: later })
    assert.equal(status, 422)
    assert.match(message, /is invalid: deprecatedLastTimestamp: .* field is immutable$/)
  })
})
