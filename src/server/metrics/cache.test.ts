import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import type { CachedStorage } from '../../cache/cached-storage.ts'
import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import { KnownOwners } from '../../incidents/known-owners.ts'
import { registerCacheMetrics, registerRunCacheMetrics } from './cache.ts'

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

test('the metrics of the known owners show their number, their size and how many were forgotten', async () => {
  const registry = new Registry()
  const owners = new KnownOwners(1_000)
  for (let pod = 0; pod < 10; pod++) {
    owners.own('c', 'shop', { kind: 'Pod', name: `p${pod}` }, { kind: 'Job', name: 'j' })
  }
  const stats = () => ({ version: '1' })
  const cached = { owners, stats, unreadable: [] } as unknown as CachedStorage
  registerCacheMetrics(cached, registry, 'events.k8s.io')
  const shown = (await registry.metrics()).split('\n')
  assert.deepEqual(
    shown.filter((line) => line.startsWith('tidings_known_owners')),
    [
      `tidings_known_owners ${owners.size}`,
      `tidings_known_owners_bytes ${owners.bytes}`,
      `tidings_known_owners_evicted_total ${10 - owners.size}`,
    ],
  )
  assert.ok(owners.size > 0 && owners.size < 10, `${owners.size}`)
})
