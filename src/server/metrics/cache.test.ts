import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import { registerRunCacheMetrics } from './cache.ts'

test('the metrics of the run cache show its size and its hits', async () => {
  const registry = new Registry()
  const runCache = new EncodedRunCache()
  registerRunCacheMetrics(runCache, registry)
  const encoder = { contentType: 'a' } as ResponseEncoder
  const run = { isPast: false }
  for (let list = 0; list < 2; list++) runCache.add(encoder, run, Buffer.from('0123456789'))
  for (let list = 0; list < 3; list++) runCache.find(encoder, run)
  const shown = (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  assert.deepEqual(shown, ['tidings_list_kept_bytes 10', 'tidings_list_kept_finds_total 3'])
})
