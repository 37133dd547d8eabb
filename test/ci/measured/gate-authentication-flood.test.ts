import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createLog } from '../../../src/lib/log/log.ts'
import { serverCommand } from '../../../src/options/commands.ts'
import { parseFlags } from '../../../src/options/parse.ts'
import { Server } from '../../../src/server/server.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { startGate } from '../../support/gate.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import { RawHttp1 } from '../../support/raw-http1.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
const FLOOD = 1_000
/**
 * Requests to etcd that a replica sends by itself in a second: lease renewals and periodic reads.
 */
const BACKGROUND_PER_SECOND = 5

describe('a flood of requests without credentials', () => {
  test('causes no request to etcd, on any path', async () => {
    await using etcd = await startEtcd()
    const folder = await mkdtemp(join(tmpdir(), 'tidings-flood-'))
    const tokens = join(folder, 'tokens.csv')
    await writeFile(tokens, 'good,ada,1,system:masters\n')
    const parsed = parseFlags(serverCommand, [
      `--etcd-servers=${etcd.endpoints[0]}`,
      '--bind-address=127.0.0.1',
      '--secure-port=0',
      `--cert-dir=${folder}`,
      `--token-auth-file=${tokens}`,
    ])
    assert.equal(parsed.kind, 'run')
    const log = createLog({ format: 'json', verbosity: 0, sink: { write: () => {} }, pid: 1 })
    const server = new Server(parsed.options, log, { lastFlushedAt: () => performance.now() })
    try {
      const { secure } = await server.start((error) => assert.fail(String(error)))
      await eventually('events are served', async () => {
        using client = await openClient('h1', secure.port)
        const headers = { authorization: 'Bearer good' }
        return (await client.request({ path: EVENTS, headers })).status === 200
      })
      const startedAt = performance.now()
      const before = await callsOf(etcd.endpoints[0] ?? '')
      for (let sent = 0; sent < FLOOD; sent += 20) {
        await Promise.all(
          Array.from({ length: 20 }, async (_, index) => {
            using client = await openClient(PROTOCOLS[index % 2] ?? 'h1', secure.port)
            const isWrite = index % 4 < 2
            const { status } = await client.request({
              path: EVENTS,
              ...(index % 3 === 0 ? { headers: { authorization: `Bearer wrong-${index}` } } : {}),
              ...(isWrite ? { method: 'POST', body: '{"kind":"Event"}' } : {}),
            })
            assert.equal(status, 401)
          }),
        )
      }
      const asked = (await callsOf(etcd.endpoints[0] ?? '')) - before
      const seconds = (performance.now() - startedAt) / 1000
      const background = BACKGROUND_PER_SECOND * (seconds + 1)
      assert.ok(
        asked <= Math.min(background, FLOOD / 2),
        `${asked} requests to etcd for ${FLOOD} requests`,
      )
    } finally {
      await server.stop()
      await rm(folder, { recursive: true })
    }
  })

  test('has none of its bodies read, nor gets a 100-continue', async () => {
    await using gate = await startGate([])
    for (let round = 0; round < 50; round++) {
      const client = await RawHttp1.open(gate.port)
      client.send(
        `POST ${EVENTS} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 1000000\r\n\r\n`,
      )
      const answer = await client.readAnswer('POST')
      assert.equal(answer.status, 401)
      assert.deepEqual(answer.informational, [])
      client.close()
    }
    assert.equal(gate.bodiesRead(), 0)
    assert.equal(gate.admitted(), 0)
  })
})

/** The number of requests to etcd, without long-lived streams. */
async function callsOf(endpoint: string): Promise<number> {
  const text = await (await fetch(`${endpoint}/metrics`)).text()
  const counts = text
    .split('\n')
    .filter((line) => /^grpc_server_started_total\{.*grpc_type="unary"/.test(line))
    .map((line) => Number(line.slice(line.lastIndexOf(' '))))
  assert.ok(counts.length > 0)
  return counts.reduce((sum, count) => sum + count, 0)
}
