import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeRequest } from '../../gate/request.fixture.ts'
import type { Request, Response } from '../../http/exchange.ts'
import { withAggregated } from './aggregated-discovery.ts'

const v2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const v2beta1 = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'

const handler = withAggregated(
  async () => ({ status: 200, headers: { 'content-type': 'application/json' }, body: 'plain' }),
  [
    [
      {
        name: 'events.k8s.io',
        version: 'v1',
        resources: [
          {
            name: 'events',
            singularName: 'event',
            namespaced: true,
            kind: 'Event',
            verbs: ['get', 'list'],
            shortNames: ['ev'],
          },
        ],
      },
    ],
  ],
)

function get(headers: Request['headers']): Promise<Response> {
  return handler(makeRequest({ path: '/apis', headers, peer: { isLoopback: true } }))
}

describe('withAggregated', () => {
  test('the request of client-go gets all groups in one response', async () => {
    const { headers, body } = await get({ accept: `${v2},${v2beta1},application/json` })
    assert.equal(headers['content-type'], v2)
    assert.equal(headers['vary'], 'Accept')
    assert.equal(headers['cache-control'], 'public')
    assert.match(headers['etag'] ?? '', /^"[0-9A-F]{128}"$/)
    assert.equal(
      body,
      '{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"events.k8s.io"},"versions":[{"version":"v1","resources":[{"resource":"events","responseKind":{"group":"","version":"","kind":"Event"},"scope":"Namespaced","singularResource":"event","verbs":["get","list"],"shortNames":["ev"]}],"freshness":"Current"}]}]}\n',
    )
  })

  test('a client with the current ETag gets a 304 without a body', async () => {
    const first = await get({ accept: v2 })
    const again = await get({ accept: v2, 'if-none-match': first.headers['etag'] })
    assert.deepEqual([again.status, again.body], [304, ''])
    assert.equal(again.headers['etag'], first.headers['etag'])
    assert.equal((await get({ accept: v2, 'if-none-match': '"other"' })).status, 200)
  })

  test('aggregated discovery is chosen by preference, and by its full name', async () => {
    const isPlain = async (accept: string | undefined): Promise<boolean> =>
      (await get({ accept })).body === 'plain'
    for (const accept of [
      undefined,
      '*/*',
      'application/json',
      `application/json,${v2}`,
      `${v2};q=0.5,application/yaml`,
      `${v2beta1},application/json`,
      v2.replace('json', 'yaml'),
      v2.replace('apidiscovery', 'other'),
      v2beta1,
    ]) {
      assert.equal(await isPlain(accept), true, accept)
    }
    for (const accept of [
      v2,
      `${v2};profile=nopeer`,
      `application/json;q=0.9,${v2}`,
      v2.replace('application/json', '*/*'),
      `${v2beta1},${v2},application/json`,
      `text/html,${v2}`,
    ]) {
      assert.equal(await isPlain(accept), false, accept)
    }
  })
})
