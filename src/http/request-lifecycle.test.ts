import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { MemoryLedger } from '../lib/client-memory/ledger.ts'
import { PlacedSet } from '../lib/placed-set.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { type RequestContext, RequestLifecycle } from './request-lifecycle.ts'
import type { Wire } from './wire.ts'

/** Such requests occur when a connection ends right after its last bytes were read. */
test('a request whose client disconnected before it started is never in flight', async () => {
  const output = new PassThrough()
  output.destroy()
  await new Promise((resolve) => output.once('close', resolve))
  const context: RequestContext = {
    handler: () => assert.fail('the handler was called'),
    lateResponse: () => assert.fail('a response was requested'),
    limits: DEFAULT_LIMITS,
    onBug: (error) => assert.fail(String(error)),
    ordinary: new PlacedSet(),
    longRunning: new PlacedSet(),
    isDraining: false,
  }
  const wire = {
    method: 'GET',
    target: '/',
    headers: {},
    rawHeaders: [],
    output,
  } as unknown as Wire
  RequestLifecycle.start(
    wire,
    context,
    new MemoryLedger().connection(() => {}),
  )
  assert.equal(context.ordinary.size, 0)
})
