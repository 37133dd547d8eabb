import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { EventClient } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import { Stranger } from '../../support/stranger.ts'
import { Tidings } from '../../support/tidings.ts'

const EVENTS = 220
/**
 * As many as fit into an event of 128 KiB; JavaScript objects for all of them would take 140 MB of
 * heap.
 */
const LABELS = 9000
const HEAP = { NODE_OPTIONS: '--max-old-space-size=80' }
/** Puts of that size fit into one transaction. */
const AT_ONCE = 10
const TOKEN = 'labels-token'

test('events with thousands of labels end no replica, neither one with a watch nor one that starts', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-labels-'))
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const tokens = join(folder, 'tokens.csv')
  await writeFile(tokens, `${TOKEN},ada,1,system:masters\n`)
  await using etcd = await startEtcd()
  using stranger = new Stranger(etcd)
  const flags = [`--etcd-servers=${etcd.endpoints[0]}`, `--token-auth-file=${tokens}`]
  {
    await using server = await Tidings.start(flags, HEAP)
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
    using client = await EventClient.open({ port: server.port, ca: server.ca, token: TOKEN })
    await client.watch('many', { labelSelector: 'none' })
    // Written past this replica, which is busy enough following them.
    for (let from = 0; from < EVENTS; from += AT_ONCE) {
      const names = Array.from({ length: AT_ONCE }, (_, n) => `e-${from + n}`)
      await stranger.put(
        ...names.map(
          (name, index) => [`/tidings/events/local/many/${name}`, stored(name, index)] as const,
        ),
      )
    }
    await eventually(
      'all have come',
      async () =>
        (await client.list('many', { limit: 1 })).metadata.remainingItemCount === EVENTS - 1,
      30_000,
    )
    const { items } = await client.list('many', { labelSelector: 'none', limit: 1000 })
    assert.deepEqual(items, [])
    assert.equal(server.process.exitCode, null)
  }
  await using again = await Tidings.start(flags, HEAP)
  await again.until('/readyz', ({ status }) => status === 200, 30_000)
  using client = await EventClient.open({ port: again.port, ca: again.ca, token: TOKEN })
  const { items } = await client.list('many', { labelSelector: 'l8999=v', limit: 1 })
  assert.equal(items.length, 1)
})

const labels = JSON.stringify(
  Object.fromEntries(Array.from({ length: LABELS }, (_, n) => [`l${n}`, 'v'])),
)

/** The stored form of an event. */
function stored(name: string, index: number): Buffer {
  const metadata = `{"name":"${name}","namespace":"many","labels":${labels}}`
  return Buffer.from(`{"w":1,"i":${index}}\n{"metadata":${metadata}}`)
}
