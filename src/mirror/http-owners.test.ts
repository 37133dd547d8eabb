import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, test } from 'node:test'
import { OriginClient } from '../clusters/origin-client.ts'
import { HttpOwners } from './http-owners.ts'
import { OriginError } from './origin.ts'
import { OWNED_RESOURCES, type OwnedResource } from './owners-origin.ts'

const { signal } = new AbortController()
const [PODS, REPLICA_SETS, JOBS] = OWNED_RESOURCES

function metadataOf(name: string, ownerReferences?: readonly unknown[]) {
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { name, namespace: 'shop', uid: 'u', resourceVersion: '7', ownerReferences },
  }
}

const owned = (name: string, owner?: { readonly kind: string; readonly name: string }) => ({
  namespace: 'shop',
  name,
  resourceVersion: '7',
  owner,
})

describe('HttpOwners', () => {
  let server: http.Server
  let client: OriginClient
  let respond: (request: IncomingMessage, response: ServerResponse) => void
  let requests: { readonly url: string; readonly accept: string }[]

  before(async () => {
    server = http.createServer((request, response) => {
      requests.push({ url: request.url ?? '', accept: request.headers.accept ?? '' })
      respond(request, response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const url = new URL(`http://127.0.0.1:${port}`)
    const empty = { ca: undefined, serverName: undefined, clientCertificate: undefined }
    client = new OriginClient(() => ({ url, ...empty, token: 'secret', fingerprint: '' }))
  })
  beforeEach(() => {
    requests = []
  })
  after(() => {
    client.close()
    server.closeAllConnections()
    server.close()
  })

  const send = (body: string, status = 200) => {
    respond = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    }
  }
  const list = (resource: OwnedResource, namespace?: string, pageBytesMax?: number) =>
    new HttpOwners({
      client,
      pageBytesMax: pageBytesMax ? () => pageBytesMax : undefined,
    }).listPage(resource, { namespace, limit: 250, continueToken: undefined, signal })
  const watch = async (resource: OwnedResource) => {
    const changes: unknown[] = []
    const owners = new HttpOwners({ client })
    for await (const change of owners.watch(resource, {
      namespace: undefined,
      from: '5',
      signal,
    })) {
      changes.push(change)
    }
    return changes
  }

  test('requests only metadata, of each resource in its group', async () => {
    send('{"metadata":{"resourceVersion":"9"},"items":[]}')
    for (const resource of [PODS, REPLICA_SETS, JOBS]) await list(resource)
    await list(PODS, 'shop')
    const as = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
    assert.deepEqual(requests, [
      { url: '/api/v1/pods?limit=250', accept: as },
      { url: '/apis/apps/v1/replicasets?limit=250', accept: as },
      { url: '/apis/batch/v1/jobs?limit=250', accept: as },
      { url: '/api/v1/namespaces/shop/pods?limit=250', accept: as },
    ])
  })

  test('decodes a page: the controller is the owner', async () => {
    const web = { kind: 'ReplicaSet', name: 'web-7d9f8b6c5', controller: true }
    const other = { kind: 'ConfigMap', name: 'web' }
    const items = [
      metadataOf('a', [other, web]),
      metadataOf('b', [other]),
      metadataOf('c'),
      metadataOf('d', [null, 7, { controller: true, name: [] }]),
      { metadata: 7 },
    ]
    send(JSON.stringify({ metadata: { resourceVersion: '9', continue: 'more' }, items }))
    assert.deepEqual(await list(PODS), {
      items: [
        owned('a', { kind: 'ReplicaSet', name: 'web-7d9f8b6c5' }),
        owned('b'),
        owned('c'),
        owned('d', { kind: '', name: '' }),
      ],
      resourceVersion: '9',
      continueToken: 'more',
      unreadable: 1,
    })
  })

  test('requests a page that is too large again with fewer items', async () => {
    const page = (count: number) =>
      JSON.stringify({
        metadata: { resourceVersion: '9' },
        items: Array.from({ length: count }, () => metadataOf('a')),
      })
    respond = (request, response) => {
      const limit = Number(new URL(request.url ?? '', 'http://x').searchParams.get('limit'))
      response.writeHead(200, { 'content-type': 'application/json' }).end(page(limit))
    }
    assert.equal((await list(PODS, undefined, 8_000)).items.length, 31)
  })

  test('decodes a watch', async () => {
    const job = { kind: 'Job', name: 'j', controller: true }
    const bookmark = { metadata: { resourceVersion: '12', creationTimestamp: null } }
    const frames = [
      { type: 'ADDED', object: metadataOf('a', [job]) },
      { type: 'MODIFIED', object: metadataOf('a') },
      { type: 'DELETED', object: metadataOf('a') },
      { type: 'BOOKMARK', object: bookmark },
      { type: 'ODD', object: metadataOf('a') },
      { type: 'ADDED' },
    ]
    send(`${frames.map((frame) => JSON.stringify(frame)).join('\n')}\nnot json\n`)
    assert.deepEqual(await watch(PODS), [
      { type: 'put', ...owned('a', { kind: 'Job', name: 'j' }) },
      { type: 'put', ...owned('a') },
      { type: 'delete', ...owned('a') },
      { type: 'bookmark', resourceVersion: '12' },
      { type: 'unreadable' },
      { type: 'unreadable' },
      { type: 'unreadable' },
    ])
    const [request] = requests
    assert.match(
      request?.url ?? '',
      /^\/api\/v1\/pods\?watch=1&allowWatchBookmarks=true&resourceVersion=5&/,
    )
    assert.equal(request?.accept, 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io')
  })

  const failures = [
    [403, 'refused'],
    [404, 'refused'],
    [406, 'refused'],
    [410, 'expired'],
    [429, 'unavailable'],
    [500, 'unavailable'],
  ] as const
  for (const [code, kind] of failures) {
    test(`${code} is ${kind}, in a response and in a watch`, async () => {
      const status = { kind: 'Status', code, message: 'because' }
      const isExpected = (error: unknown): boolean =>
        error instanceof OriginError && error.kind === kind && error.message.includes('because')
      send(JSON.stringify(status), code)
      await assert.rejects(list(PODS), isExpected)
      await assert.rejects(watch(PODS), isExpected)
      send(`${JSON.stringify({ type: 'ERROR', object: status })}\n`)
      await assert.rejects(watch(PODS), isExpected)
    })
  }
})
