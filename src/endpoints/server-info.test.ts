import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request } from '../http/exchange.ts'
import { metricsService } from './server-info.ts'

describe('metrics', () => {
  test('are made once for all who ask while they are made, and never before one asked', async () => {
    let made = 0
    let counted = 0
    const service = metricsService('/metrics', {
      contentType: 'text/plain',
      metrics: async () => {
        made += 1
        return `counted ${counted}\n`
      },
    })
    const handler = service.find('/metrics') ?? assert.fail('not found')
    const asked = Array.from({ length: 100 }, async () => {
      const before = ++counted
      const { status, body } = await handler({} as Request, {} as never)
      assert.equal(status, 200)
      const shown = Number(String(body).split(' ')[1])
      assert.ok(shown >= before, `${shown} of ${before}`)
    })
    await Promise.all(asked)
    assert.ok(made <= 2, `made ${made} times`)
    counted = 1000
    assert.equal(String((await handler({} as Request, {} as never)).body), 'counted 1000\n')
  })
})
