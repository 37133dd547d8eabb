import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError } from '../../api/status.ts'
import { readTarget } from '../../gate/target.ts'
import type { Request, Response } from '../../http/exchange.ts'
import { listOnlyService } from './read-only-service.ts'

const base = '/apis/tidings.dev/v1alpha1'

describe('a resource that can only be listed', () => {
  const service = listOnlyService({
    group: 'tidings.dev',
    version: 'v1alpha1',
    resource: 'sums',
    list: async (_request, { place }) => ({
      status: 200,
      headers: {},
      body: place.kind === 'collection' ? place.namespace : 'all',
    }),
  })

  const ask = async (
    path: string,
    { method = 'GET', query = '' } = {},
  ): Promise<Response | undefined> => {
    const request = {
      method,
      path,
      query: new URLSearchParams(query),
      headers: {},
      signal: new AbortController().signal,
    } as Request
    const handler = service.find(readTarget(request, 'local'))
    return handler?.(request, { user: { name: 'ada', groups: [] }, authorize: async () => {} })
  }

  test('is listed in all namespaces and in one', async () => {
    assert.equal((await ask(`${base}/sums`))?.body, 'all')
    assert.equal((await ask(`${base}/namespaces/shop/sums`))?.body, 'shop')
  })

  for (const [name, path, options] of [
    ['a get', `${base}/namespaces/shop/sums/x`, {}],
    ['a watch', `${base}/sums`, { query: 'watch=true' }],
    ['a watch path', `${base}/watch/sums`, {}],
    ['a create', `${base}/namespaces/shop/sums`, { method: 'POST' }],
    ['a delete', `${base}/namespaces/shop/sums`, { method: 'DELETE' }],
    ['a HEAD', `${base}/sums`, { method: 'HEAD' }],
  ] as const) {
    test(`refuses ${name} with 405`, async () => {
      await assert.rejects(
        ask(path, options),
        (error) => error instanceof StatusError && error.reason === 'MethodNotAllowed',
      )
    })
  }

  test('has no objects without a namespace', async () => {
    await assert.rejects(
      ask(`${base}/sums/x`),
      (error) => error instanceof StatusError && error.reason === 'NotFound',
    )
  })

  test('leaves other resources, groups and versions to others', async () => {
    assert.equal(await ask(`${base}/clusters`), undefined)
    assert.equal(await ask('/apis/other.dev/v1alpha1/sums'), undefined)
    assert.equal(await ask('/apis/tidings.dev/v1/sums'), undefined)
  })
})
