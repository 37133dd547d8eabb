import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Event } from '../api/event.ts'
import { coreGroup } from '../api/event-groups.ts'
import { OriginClient } from '../clusters/origin-client.ts'
import { encodeDocument, wrapEnvelope } from '../codec/struct/kube-protobuf.ts'
import { listMetaType } from '../codec/struct/meta-types.ts'
import { encodeStruct } from '../codec/struct/protobuf-struct.ts'
import type { JsonObject } from '../lib/json.ts'
import { BackwardWriter } from '../lib/protobuf.ts'
import { uidOf as derivedUid } from '../storage/namespace-form.ts'
import { HttpOrigin, type HttpOriginOptions } from './http-origin.ts'
import { type OriginChange, OriginError } from './origin.ts'

const protobuf = 'application/vnd.kubernetes.protobuf'
const { signal } = new AbortController()

function eventOf(name: string, resourceVersion: string): Event {
  return {
    metadata: {
      name,
      namespace: 'a',
      uid: `uid-${name}`,
      resourceVersion,
      creationTimestamp: '2026-01-02T03:04:05Z',
      managedFields: [
        {
          manager: 'kubelet',
          operation: 'Update',
          apiVersion: 'v1',
          time: '2026-01-02T03:04:05Z',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:count': {} },
        },
      ],
    },
    note: 'Back-off restarting failed container <app> ü',
    reason: 'BackOff',
    type: 'Warning',
    regarding: { kind: 'Pod', namespace: 'a', name: 'p', fieldPath: 'spec.containers{app}' },
    deprecatedSource: { component: 'kubelet', host: 'node-1' },
    deprecatedFirstTimestamp: '2026-01-02T03:04:05Z',
    deprecatedLastTimestamp: '2026-01-02T03:05:05Z',
    deprecatedCount: 7,
  }
}

const asCore = (event: Event) => coreGroup.fromEvent(event) as JsonObject
const bareMessage = (event: Event) => encodeStruct(coreGroup.type, asCore(event))

function listOf(form: 'json' | 'protobuf', metadata: JsonObject, events: readonly Event[]): Buffer {
  if (form === 'json') {
    const list = { kind: 'EventList', apiVersion: 'v1', metadata, items: events.map(asCore) }
    return Buffer.from(JSON.stringify(list, undefined, 1))
  }
  const writer = new BackwardWriter(1024)
  for (const event of events.toReversed()) writer.bytes(2, bareMessage(event), { always: true })
  writer.bytes(1, encodeStruct(listMetaType, metadata), { always: true })
  return wrapEnvelope({ apiVersion: 'v1', kind: 'EventList' }, writer.finish())
}

function frameOf(form: 'json' | 'protobuf', type: string, object: Event | JsonObject): Buffer {
  const isStatus = type === 'ERROR'
  if (form === 'json') {
    const shown = isStatus
      ? object
      : { kind: 'Event', apiVersion: 'v1', ...asCore(object as Event) }
    return Buffer.from(`${JSON.stringify({ type, object: shown })}\n`)
  }
  const raw = isStatus
    ? encodeDocument({ kind: 'Status', apiVersion: 'v1', ...object })
    : wrapEnvelope({ apiVersion: 'v1', kind: 'Event' }, bareMessage(object as Event))
  const extension = new BackwardWriter(1024)
  extension.bytes(1, raw)
  const event = new BackwardWriter(1024)
  event.bytes(2, extension.finish())
  event.bytes(1, Buffer.from(type))
  const message = event.finish()
  const length = Buffer.alloc(4)
  length.writeUInt32BE(message.length)
  return Buffer.concat([length, message])
}

describe('HttpOrigin', () => {
  let server: http.Server
  let client: OriginClient
  let respond: (request: IncomingMessage, response: ServerResponse) => void
  let paths: string[]

  before(async () => {
    server = http.createServer((request, response) => {
      paths.push(request.url ?? '')
      respond(request, response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const url = new URL(`http://127.0.0.1:${port}/clusters/x/`)
    const empty = { ca: undefined, serverName: undefined, clientCertificate: undefined }
    client = new OriginClient(() => ({ url, ...empty, token: 'secret', fingerprint: '' }))
  })
  beforeEach(() => {
    paths = []
  })
  after(() => {
    client.close()
    server.closeAllConnections()
    server.close()
  })

  const list = (
    options: Partial<Parameters<HttpOrigin['listPage']>[0]> = {},
    bounds: Pick<HttpOriginOptions, 'pageBytesMax' | 'itemBytesMax'> = {},
  ) =>
    new HttpOrigin({ client, ...bounds }).listPage({
      namespace: undefined,
      limit: 500,
      continueToken: undefined,
      signal,
      ...options,
    })
  const watch = async (from = '7') => {
    const changes: OriginChange[] = []
    const origin = new HttpOrigin({ client, random: () => 0.5 })
    for await (const change of origin.watch({ namespace: undefined, from, signal })) {
      changes.push(change)
    }
    return changes
  }
  const send = (body: Buffer | string, contentType: string, status = 200) => {
    respond = (_request, response) => {
      response.writeHead(status, { 'content-type': contentType }).end(body)
    }
  }

  const uidOf = () => new HttpOrigin({ client }).clusterUid(signal)
  const namespaceOf = (uid: unknown) =>
    JSON.stringify({ kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'kube-system', uid } })

  test('identifies a cluster by the uid of kube-system', async () => {
    const random = '0f7e9c51-54f2-4f0c-9f0e-0d6ad4f0c1aa'
    // The cluster was created before Kubernetes 1.16.
    const timed = '5c1a2f1e-3b7d-11e8-9c2d-fa7ae01bbebc'
    for (const uid of [random, timed]) {
      send(namespaceOf(uid), 'application/json')
      assert.equal(await uidOf(), uid)
    }
    assert.equal(paths[0], '/clusters/x/api/v1/namespaces/kube-system')
  })

  test('ignores a uid that is derived from names or cannot be read', async () => {
    const derived = derivedUid('prod/kube-system')
    for (const body of [namespaceOf(derived), namespaceOf(7), '[]', 'null', '<html>']) {
      send(body, 'application/json')
      assert.equal(await uidOf(), undefined, body)
    }
    send('x'.repeat(1024 * 1024 + 1), 'application/json')
    assert.equal(await uidOf(), undefined)
    for (const status of [401, 403, 404]) {
      send('{}', 'application/json', status)
      assert.equal(await uidOf(), undefined, String(status))
    }
  })

  test('distinguishes a failure to read the uid from an origin without one', async () => {
    for (const status of [429, 500, 503]) {
      send('{}', 'application/json', status)
      await assert.rejects(uidOf(), (error) => {
        return error instanceof OriginError && error.kind === 'unavailable'
      })
    }
  })

  for (const form of ['json', 'protobuf'] as const) {
    const type = form === 'json' ? 'application/json' : protobuf

    test(`decodes a page: ${form}`, async () => {
      const events = Array.from({ length: 200 }, (_, index) =>
        eventOf(`e${index}`, `${100 + index}`),
      )
      send(listOf(form, { resourceVersion: '900', continue: 'abc' }, events), type)
      const page = await list({ continueToken: 'to ken', namespace: 'a' })
      assert.deepEqual(
        page.items.map(({ event }) => event),
        events,
      )
      assert.equal(page.items[5]?.resourceVersion, '105')
      assert.ok((page.items[5]?.bytes ?? 0) > 100)
      assert.deepEqual([page.resourceVersion, page.continueToken], ['900', 'abc'])
      assert.deepEqual(paths, ['/clusters/x/api/v1/namespaces/a/events?limit=500&continue=to+ken'])
    })

    test(`decodes an empty list: ${form}`, async () => {
      send(listOf(form, { resourceVersion: '900', continue: '' }, []), type)
      const page = await list()
      assert.deepEqual([page.items, page.continueToken, page.unreadable], [[], undefined, 0])
    })

    test(`requests a page that is too large again with fewer items: ${form}`, async () => {
      respond = (request, response) => {
        const limit = Number(new URL(request.url ?? '', 'http://x').searchParams.get('limit'))
        const events = Array.from({ length: Math.min(limit, 400) }, () => eventOf('e', '1'))
        response.writeHead(200, { 'content-type': type })
        response.end(listOf(form, { resourceVersion: '900' }, events))
      }
      const page = await list({}, { pageBytesMax: () => 20_000 })
      assert.ok(page.items.length > 0 && page.items.length < 63, String(page.items.length))
      assert.ok(paths.length > 1 && paths.length < 5)
      const bounds = { pageBytesMax: () => 100 }
      assert.equal((await list({}, bounds)).items.length, 1, 'a single event may be larger')
      const rejected = list({}, { ...bounds, itemBytesMax: 100 })
      await assert.rejects(rejected, /one of the events is too large/)
    })

    test(`decodes a watch: ${form}`, async () => {
      const added = eventOf('e', '8')
      const last = eventOf('e', '9')
      const bookmark = { metadata: { resourceVersion: '12' } }
      const body = Buffer.concat([
        frameOf(form, 'ADDED', added),
        frameOf(form, 'MODIFIED', added),
        frameOf(form, 'DELETED', last),
        frameOf(form, 'BOOKMARK', bookmark),
        frameOf(form, 'SURPRISE', added),
      ])
      send(body, form === 'json' ? type : `${protobuf};stream=watch`)
      const changes = await watch()
      assert.deepEqual(
        changes.map((change) => change.type),
        ['put', 'put', 'delete', 'bookmark', 'unreadable'],
      )
      const [put, , deleted, marked] = changes
      assert.ok(put?.type === 'put' && deleted?.type === 'delete' && marked?.type === 'bookmark')
      assert.deepEqual(put.event, added)
      assert.deepEqual([deleted.resourceVersion, marked.resourceVersion], ['9', '12'])
      assert.deepEqual(paths, [
        '/clusters/x/api/v1/events?watch=1&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=450',
      ])
    })

    test(`reports an ERROR frame with 410 as expired: ${form}`, async () => {
      const status = { status: 'Failure', message: 'too old', reason: 'Expired', code: 410 }
      send(frameOf(form, 'ERROR', status), form === 'json' ? type : `${protobuf};stream=watch`)
      await assert.rejects(watch(), (error) => isOrigin(error, 'expired', /410: too old/))
    })
  }

  test('counts items that cannot be decoded and returns the others', async () => {
    const items = [asCore(eventOf('a', '1')), { metadata: { name: 7 } }, asCore(eventOf('b', '2'))]
    send(JSON.stringify({ items, metadata: { resourceVersion: '9' } }), 'application/json')
    const page = await list()
    assert.deepEqual(
      page.items.map(({ resourceVersion }) => resourceVersion),
      ['1', '2'],
    )
    assert.equal(page.unreadable, 1)
    send('{"type":"ADDED","object":{"metadata":7}}\nnot json\n', 'application/json')
    assert.deepEqual(await watch(), [{ type: 'unreadable' }, { type: 'unreadable' }])
  })

  for (const body of [
    '',
    '{',
    '{"items":[',
    '{"items":[{}',
    '[]',
    '{"items":[]}',
    '<html>',
    '{"a" 1}',
  ]) {
    test(`fails for a body that is not a list, and can be retried: ${body}`, async () => {
      send(body, 'application/json')
      await assert.rejects(list(), (error) => isOrigin(error, 'unavailable', /not a list/))
    })
  }

  const statuses: readonly [number, OriginError['kind']][] = [
    [401, 'refused'],
    [403, 'refused'],
    [404, 'refused'],
    [406, 'refused'],
    [301, 'refused'],
    [410, 'expired'],
    [429, 'unavailable'],
    [500, 'unavailable'],
    [503, 'unavailable'],
    [504, 'unavailable'],
  ]
  for (const [code, kind] of statuses) {
    test(`${code} is ${kind}`, async () => {
      const message = `events is not for you <${'x'.repeat(1000)}>`
      send(JSON.stringify({ kind: 'Status', code, message }), 'application/json', code)
      for (const call of [list(), watch()]) {
        await assert.rejects(call, (error) => {
          assert.ok(error instanceof OriginError && error.message.length < 400)
          return isOrigin(error, kind, new RegExp(`responded ${code}: events is not`))
        })
      }
    })
  }

  test('passes Retry-After on, up to five minutes', async () => {
    for (const [seconds, expected] of [
      ['3', 3_000],
      ['99999999999', 300_000],
      ['soon', undefined],
    ] as const) {
      respond = (_request, response) => {
        response.writeHead(429, { 'retry-after': seconds }).end('slow down')
      }
      await assert.rejects(list(), (error) => {
        return error instanceof OriginError && error.retryAfterMs === expected
      })
    }
  })

  test('reports a broken connection as unavailable, before and within a body', async () => {
    respond = (request) => request.socket.destroy()
    await assert.rejects(list(), (error) => isOrigin(error, 'unavailable', /./))
    respond = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 })
      response.write(frameOf('json', 'ADDED', eventOf('e', '8')), () => response.destroy())
    }
    await assert.rejects(list(), (error) => isOrigin(error, 'unavailable', /./))
    await assert.rejects(watch(), (error) => isOrigin(error, 'unavailable', /./))
  })

  test('ends the request of a watch that is left early or aborted', async () => {
    let closed = 0
    respond = (request, response) => {
      request.socket.once('close', () => closed++)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(frameOf('json', 'ADDED', eventOf('e', '8')))
    }
    const origin = new HttpOrigin({ client })
    for await (const change of origin.watch({ namespace: undefined, from: '1', signal })) {
      assert.equal(change.type, 'put')
      break
    }
    const ending = new AbortController()
    const aborted = (async () => {
      const options = { namespace: undefined, from: '1', signal: ending.signal }
      for await (const _ of origin.watch(options)) ending.abort()
    })()
    await aborted.catch(() => assert.ok(ending.signal.aborted))
    while (closed < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  })

  test('does not block the event loop while decoding a large page', async () => {
    for (const form of ['json', 'protobuf'] as const) {
      const events = Array.from({ length: 1_000 }, (_, index) => eventOf(`e${index}`, '1'))
      const type = form === 'json' ? 'application/json' : protobuf
      send(listOf(form, { resourceVersion: '900' }, events), type)
      let turns = 0
      const timer = setInterval(() => turns++, 1)
      const page = await list()
      clearInterval(timer)
      assert.equal(page.items.length, 1_000)
      // 15 turns of 64 items: timers get a turn between them.
      assert.ok(turns > 4, `${turns} turns`)
    }
  })

  test('rejects a page with far more items than were requested', async () => {
    const events = Array.from({ length: 1_001 }, (_, index) => eventOf(`e${index}`, '1'))
    send(listOf('json', { resourceVersion: '900' }, events), 'application/json')
    await assert.rejects(list(), (error) => isOrigin(error, 'unavailable', /over 1000 items/))
  })
})

function isOrigin(error: unknown, kind: OriginError['kind'], message: RegExp): boolean {
  assert.ok(error instanceof OriginError, String(error))
  assert.equal(error.kind, kind)
  assert.match(error.message, message)
  return true
}
