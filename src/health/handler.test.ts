import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request } from '../http/exchange.ts'
import { type Log, silentLog } from '../lib/log/log.ts'
import { healthPaths } from './handler.ts'
import { Probe } from './probe.ts'
import { HealthTallies } from './tallies.ts'

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

/** An endpoint with one check that can be made to fail, and the lines it has logged. */
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
    tallies: new HealthTallies(),
    log,
    clock: { now: () => state.now },
  })
  const probe = async (query = ''): Promise<number> => {
    const response = await find('/readyz')?.(request(query))
    return response?.status ?? 0
  }
  return { state, lines, probe }
}

describe('the log of failing probes', () => {
  test('a failing check is logged once, even if its reason changes, and its recovery once', async () => {
    const { state, lines, probe } = fixture()
    await probe()
    state.reason = 'late by 1s'
    await probe()
    state.reason = 'late by 2s'
    await probe()
    state.reason = undefined
    await probe()
    await probe()
    assert.deepEqual(lines, [
      'Health check failed datastore: late by 1s',
      'Health checks pass again',
    ])
  })

  test('a lasting failure is logged every ten seconds', async () => {
    const { state, lines, probe } = fixture()
    state.reason = 'gone'
    for (state.now = 0; state.now <= 20_000; state.now += 1000) await probe()
    assert.equal(lines.length, 3)
  })

  test('a request that excludes a check does not affect the log', async () => {
    const { state, lines, probe } = fixture()
    state.reason = 'gone'
    assert.equal(await probe(), 500)
    assert.equal(await probe('exclude=datastore'), 200)
    assert.equal(await probe(), 500)
    assert.equal(lines.length, 1)
  })
})
