import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { targetOf } from '../gate/target.fixture.ts'
import type { Request } from '../http/exchange.ts'
import { metricsService } from './server-info.ts'

describe('metrics', () => {
  test('concurrent requests share one rendering, which starts after each of them arrived', async () => {
    let renderings = 0
    let counted = 0
    const service = metricsService('/metrics', {
      contentType: 'text/plain',
      metrics: async () => {
        renderings += 1
        return `counted ${counted}\n`
      },
    })
    const handler = service.find(targetOf('/metrics')) ?? assert.fail('not found')
    const requests = Array.from({ length: 100 }, async () => {
      const before = ++counted
      const { status, body } = await handler({} as Request, {} as never)
      assert.equal(status, 200)
      const shown = Number(String(body).split(' ')[1])
      assert.ok(shown >= before, `${shown} of ${before}`)
    })
    await Promise.all(requests)
    assert.ok(renderings <= 2, `${renderings} renderings`)
    counted = 1000
    assert.equal(String((await handler({} as Request, {} as never)).body), 'counted 1000\n')
  })
})
