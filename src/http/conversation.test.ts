import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { MemoryLedger } from '../lib/ledger.ts'
import { Conversation, type ConversationContext } from './conversation.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { Wire } from './wire.ts'

/** Such requests come when a connection ends right after what was read from it. */
test('a request whose client is gone before anybody has looked at it is never under way', async () => {
  const output = new PassThrough()
  output.destroy()
  await new Promise((resolve) => output.once('close', resolve))
  const context: ConversationContext = {
    handler: () => assert.fail('nobody would hear of its end'),
    lateResponse: () => assert.fail('nobody would get it'),
    limits: DEFAULT_LIMITS,
    onBug: (error) => assert.fail(String(error)),
    ordinary: new Set(),
    longRunning: new Set(),
    isDraining: false,
  }
  const wire = {
    method: 'GET',
    target: '/',
    headers: {},
    rawHeaders: [],
    output,
  } as unknown as Wire
  Conversation.start(
    wire,
    context,
    new MemoryLedger().connection(() => {}),
  )
  assert.equal(context.ordinary.size, 0)
})
