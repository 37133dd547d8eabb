/**
 * Measures what one write costs: `node test/simulation/etcd/checks/speed.ts [members] [watches]`.
 * The time is that of the processor, for decoding, replication, application on all members, the
 * reply, and a message for each watch; it includes the scheduler of the fake world.
 */
import process from 'node:process'
import { encodeTxn } from '../../../../src/etcd/protocol/hot-messages.ts'
import { FakeWorld } from './fake-world.ts'
import { message, nested } from './messages.ts'

const size = Number(process.argv[2] ?? 3)
const watches = Number(process.argv[3] ?? 1)
const writes = 200_000
const keys = 10_000
const historyKept = 1_000

const world = new FakeWorld({ size })
world.elect()
const create = nested(1, message([1, '/e/'], [2, '/e0'], [3, 2], [4, true], [6, true], [8, true]))
const streams = world.cluster.members.flatMap((_, member) =>
  Array.from({ length: watches }, () => world.watch(member, create)),
)
world.advance(500)
const value = Buffer.alloc(400, 'x')
const requests = Array.from({ length: keys }, (_, index) => {
  const key = Buffer.from(`/e/${index}`)
  const put = { type: 'put', key, value } as const
  return encodeTxn({
    compare: [{ key, target: 'modRevision', to: 0 }],
    success: [put],
    failure: [put],
  })
})

let replies = 0
function write(index: number): void {
  const member = world.cluster.members[index % size]
  const request = requests[index % keys] as Buffer
  member?.call('/etcdserverpb.KV/Txn', request, { needsLeader: true }, ({ code }) => {
    if (code === 0) replies++
  })
  world.advance(1)
  if (index % 1_000 !== 0) return
  world.commits.length = 0
  for (const { messages } of streams) messages.length = 0
  if (index % 10_000 === 0 && index > 0) {
    world.send(0, 'KV/Compact', message([1, world.cluster.revision - historyKept]))
  }
}

for (let index = 0; index < keys; index++) write(index)
const scheduled = world.scheduled
const before = process.cpuUsage()
for (let index = 0; index < writes; index++) write(index)
const used = process.cpuUsage(before)
world.advance(1_000)
const microseconds = (used.user + used.system) / writes
process.stdout.write(
  `${microseconds.toFixed(1)} us and ${((world.scheduled - scheduled) / writes).toFixed(1)} scheduled entries per write, ` +
    `${size} members, ${watches} watches each, ${replies - keys} of ${writes} replies, ` +
    `${Math.round(process.memoryUsage().rss / 1e6)} MB\n`,
)
