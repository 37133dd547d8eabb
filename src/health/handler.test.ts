import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request } from '../http/exchange.ts'
import { type Log, silentLog } from '../lib/log.ts'
import { healthPaths } from './handler.ts'
import { HealthMetrics } from './metrics.ts'
import { Probe } from './probe.ts'

function request(query: string): Request {
  return {
    method: 'GET',
    path: '/readyz',
    query: new URLSearchParams(query),
    headers: {},
    peer: { address: '', isLoopback: true, clientCertificate: () => undefined },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
  }
}

/** An endpoint with one check that can be broken, and what it has logged. */
function fixture() {
  const lines: string[] = []
  const state = { now: 0, reason: undefined as string | undefined }
  const log: Log = {
    ...silentLog,
    info: (msg) => lines.push(msg),
    warn: (msg, fields) => lines.push(`${msg} ${fields?.['failed']}`),
  }
  const check = {
    name: 'datastore',
    run: async () => {
      if (state.reason !== undefined) throw new Error(state.reason)
    },
  }
  const find = healthPaths({
    probes: [new Probe('readyz', [check])],
    metrics: new HealthMetrics(),
    log,
    clock: { now: () => state.now },
  })
  const ask = async (query = ''): Promise<number> => {
    const answer = await find('/readyz')?.(request(query))
    return answer?.status ?? 0
  }
  return { state, lines, ask }
}

describe('the log of failing probes', () => {
  test('tells once that a check fails, whatever its reason does, and once that it passes', async () => {
    const { state, lines, ask } = fixture()
    await ask()
    state.reason = 'late by 1s'
    await ask()
    state.reason = 'late by 2s'
    await ask()
    state.reason = undefined
    await ask()
    await ask()
    assert.deepEqual(lines, [
      'Health check failed datastore: late by 1s',
      'Health checks pass again',
    ])
  })

  test('repeats itself every ten seconds while it lasts', async () => {
    const { state, lines, ask } = fixture()
    state.reason = 'gone'
    for (state.now = 0; state.now <= 20_000; state.now += 1000) await ask()
    assert.equal(lines.length, 3)
  })

  test('is not moved by a question that leaves a check out', async () => {
    const { state, lines, ask } = fixture()
    state.reason = 'gone'
    assert.equal(await ask(), 500)
    assert.equal(await ask('exclude=datastore'), 200)
    assert.equal(await ask(), 500)
    assert.equal(lines.length, 1)
  })
})
