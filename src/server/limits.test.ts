import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { readTarget } from '../gate/target.ts'
import { DEFAULT_LEDGER_LIMITS, MemoryLedger } from '../lib/client-memory/ledger.ts'
import { silentLog } from '../lib/log/log.ts'
import { serverCommand } from '../options/commands.ts'
import { parseFlags } from '../options/parse.ts'
import { TopSources } from '../registry/top-sources.ts'
import { openLimits } from './limits.ts'

describe('openLimits', () => {
  test('a user who exceeds the memory limit is counted among refused callers', async () => {
    const parsed = parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:1'])
    assert.equal(parsed.kind, 'run')
    const registry = new Registry()
    const ledger = new MemoryLedger({ ...DEFAULT_LEDGER_LIMITS, userBytes: 1 })
    const opened = await openLimits(parsed.options, registry, silentLog, { ledger })
    using holding = ledger.connection(() => {}).open(10)
    assert.equal(holding.own('ada'), 'user')
    const page = await registry.metrics()
    assert.match(page, /^tidings_refused_requests_total\{user="ada",controller=""\} 1$/m)
    opened.stop()
  })

  test('request metrics name every served resource, and no other', async () => {
    const parsed = parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:1'])
    assert.equal(parsed.kind, 'run')
    const registry = new Registry()
    const opened = await openLimits(parsed.options, registry, silentLog)
    for (const path of [
      '/api/v1/namespaces/a/events',
      '/apis/events.k8s.io/v1/namespaces/a/events',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
      '/apis/example.com/v1/unknowns',
    ]) {
      const asked = readTarget({ method: 'POST', path, query: new URLSearchParams() }, 'local')
      opened.observer.ended(asked, { status: 201, bytes: 1 }, { ms: 1, isLong: false })
    }
    const shown = await registry.metrics()
    const counted = new Set(
      shown
        .split('\n')
        .filter((line) => line.startsWith('apiserver_request_total{'))
        .map(
          (line) => `${/group="([^"]*)"/.exec(line)?.[1]}/${/resource="([^"]*)"/.exec(line)?.[1]}`,
        ),
    )
    assert.deepEqual([...counted].sort(), [
      '/',
      '/events',
      'authentication.k8s.io/selfsubjectreviews',
      'authorization.k8s.io/selfsubjectaccessreviews',
      'authorization.k8s.io/selfsubjectrulesreviews',
      'events.k8s.io/events',
    ])
    opened.stop()
  })

  test('a write is refused when it exceeds its share of memory, or of etcd', async () => {
    const parsed = parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:1'])
    assert.equal(parsed.kind, 'run')
    const event = { metadata: { namespace: 'a', name: 'e' } }
    const write = { cluster: 'c', event, bytes: 1_000, growth: 1_000 }
    const idle = {
      headroom: 1,
      eventBytes: 0,
      etcdSpace: { usedBytes: 0, budgetBytes: 1e9 },
      silentMs: 0,
      sizes: undefined,
      sources: new TopSources(),
      lifetimeOf: () => 1_000,
    }
    for (const [space, reason] of [
      [idle, undefined],
      [{ ...idle, eventBytes: 1e6 }, /^the memory for events is full/],
      [{ ...idle, etcdSpace: { usedBytes: 1e9, budgetBytes: 1e9 } }, /^etcd is nearly full/],
    ] as const) {
      const opened = await openLimits(parsed.options, new Registry(), silentLog, {
        space,
        budget: { eventBytes: 1e6 },
      })
      const admit = () => opened.admission.admit({ account: 'ada', payer: 'ada' }, write)
      if (reason === undefined) admit()
      else assert.throws(admit, { code: 429, message: reason })
      opened.stop()
    }
  })

  test('writes that etcd counts already are not counted twice', async () => {
    const parsed = parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:1'])
    assert.equal(parsed.kind, 'run')
    const event = { metadata: { namespace: 'a', name: 'e' } }
    const etcdSpace = { usedBytes: 0, budgetBytes: 1e6 }
    const opened = await openLimits(parsed.options, new Registry(), silentLog, {
      space: {
        headroom: 1,
        eventBytes: 0,
        etcdSpace,
        silentMs: 0,
        sizes: undefined,
        sources: new TopSources(),
        lifetimeOf: () => 1_000,
      },
    })
    for (const account of ['ada', 'bob']) {
      const write = { cluster: account, event, bytes: 300_000, growth: 300_000 }
      opened.admission.admit({ account, payer: account }, write)
      etcdSpace.usedBytes += 300_000
    }
    opened.stop()
  })
})
