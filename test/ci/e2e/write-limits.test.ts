/**
 * One user within its limits cannot fill etcd:
 *   node --test test/ci/e2e/write-limits.test.ts
 * Differences from Kubernetes: smaller-events, bytes-a-second.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LimitedServer, WRITE } from '../../support/limited-server.ts'
import { inParallel } from '../../support/load.ts'
import type { Answer } from '../../support/tidings.ts'

const QUOTA_BYTES = 64 * 1024 * 1024
/**
 * At this rate the allowance is as large as the quota; by default it is an eighth of etcd's own
 * quota.
 */
const BYTES_PER_SECOND = QUOTA_BYTES / 256
const path = (namespace: string, name = ''): string =>
  `/apis/events.k8s.io/v1/namespaces/${namespace}/events${name === '' ? '' : `/${name}`}`

function eventOf(namespace: string, name: string, annotation = ''): string {
  const event = JSON.parse(WRITE.body ?? '')
  event.metadata = { name, namespace, annotations: { filler: annotation } }
  event.regarding.namespace = namespace
  return JSON.stringify(event)
}

describe('write limits', () => {
  test('an event that exceeds the limit gets a 413 with the limit, whichever way it grows', async () => {
    await using limited = await LimitedServer.start(['ada'], ['--max-event-bytes=4096'])
    const ask = asker(limited)
    const large = await ask('ada', 'POST', path('a'), [eventOf('a', 'e', 'x'.repeat(4096))])
    assert.equal(large.status, 413)
    assert.match(large.body, /"reason":"RequestEntityTooLarge"/)
    assert.match(large.body, /the event would have \d+ bytes, limit is 4096/)
    assert.equal((await ask('ada', 'POST', path('a'), [eventOf('a', 'e')])).status, 201)
    const filler = { metadata: { annotations: { filler: 'x'.repeat(4000) } } }
    const applied = { apiVersion: 'events.k8s.io/v1', kind: 'Event', ...filler }
    for (const [type, patch, query] of [
      ['application/merge-patch+json', filler, ''],
      ['application/strategic-merge-patch+json', filler, ''],
      ['application/json-patch+json', [{ op: 'add', path: '/note', value: 'x'.repeat(4000) }], ''],
      ['application/apply-patch+yaml', applied, '?fieldManager=test&force=true'],
    ] as const) {
      const body = JSON.stringify(patch)
      const { status } = await ask('ada', 'PATCH', `${path('a', 'e')}${query}`, [body, type])
      assert.ok(status === 413 || (type.includes('json-patch') && status === 422), type)
    }
  })

  test('one user who writes as much as allowed does not fill etcd, and others still write', async (context) => {
    await using limited = await LimitedServer.start(
      ['ada', 'bob'],
      [`--max-write-bytes-per-second=${BYTES_PER_SECOND}`],
      [`--quota-backend-bytes=${QUOTA_BYTES}`],
    )
    const ask = asker(limited)
    const filler = eventOf('a', 'filler', 'x'.repeat(120 * 1024))
    assert.equal((await ask('ada', 'POST', path('a'), [filler])).status, 201)
    const counts = new Map<number, number>()
    const until = performance.now() + 90_000
    await inParallel(10_000, 8, async (n) => {
      if (performance.now() > until || (counts.get(429) ?? 0) > 50) return
      const patch = `{"metadata":{"annotations":{"n":"${n}"}}}`
      const type = 'application/merge-patch+json'
      const { status, headers } = await ask('ada', 'PATCH', path('a', 'filler'), [patch, type])
      counts.set(status, (counts.get(status) ?? 0) + 1)
      if (status === 429) assert.match(String(headers['retry-after']), /^[1-9][0-9]*$/)
    })
    assert.ok((counts.get(200) ?? 0) > 100, `patched: ${counts.get(200)}`)
    assert.ok((counts.get(429) ?? 0) > 0, 'the user was never limited')
    assert.deepEqual([...counts.keys()].sort(), [200, 429])
    for (const name of ['first', 'second', 'third']) {
      const { status, body } = await ask('bob', 'POST', path('b'), [eventOf('b', name)])
      assert.equal(status, 201, body)
    }
    const { body } = await limited.server.ask('/metrics')
    assert.match(body, /^tidings_etcd_no_space 0$/m)
    assert.match(body, /^tidings_event_rate_limited_total\{type="User",unit="bytes"\} [1-9]/m)
    const usedPart = Number(/^tidings_etcd_quota_used_ratio (\S+)$/m.exec(body)?.[1])
    assert.ok(usedPart > 0.5 && usedPart < 0.8, `in use: ${usedPart}`)
    context.diagnostic(`${counts.get(200)} patches passed; in use: ${usedPart}`)
  })
})

function asker({ server }: LimitedServer) {
  return (user: string, method: string, at: string, [body, type]: Sent): Promise<Answer> =>
    server.ask(at, {
      method,
      body,
      headers: { authorization: `Bearer ${user}`, 'content-type': type ?? 'application/json' },
    })
}

type Sent = readonly [body: string, type?: string]
