import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Balancer } from '../../support/balancer.ts'
import { isFull } from '../../support/load.ts'
import { Replicas } from '../../support/replicas.ts'
import { Burst, type BurstReport, type BurstSize } from './burst.ts'
import { buildProgram, whyNot } from './program.ts'

const SIZE: BurstSize = {
  recorders: 100,
  events: isFull ? 20_000 : 3000,
  perSecond: isFull ? 500 : 300,
}
/** A starved machine, whose etcd takes seconds for a write, has some rejections. */
const REFUSED_SHARE_MAX = 0.05
/**
 * How long etcd is down: longer than a write is held, shorter than the ten retries of client-go.
 */
const OUTAGE_MS = 9000
/** Between the end of one restart and the start of the next. */
const PAUSE_MS = 1000

interface Roll {
  readonly title: string
  readonly signal: NodeJS.Signals
  readonly flags: readonly string[]
  /** Whether the balancer removes a replica before it is stopped. */
  readonly isAnnounced: boolean
}

const ROLLS: readonly Roll[] = [
  { title: 'stopped gracefully', signal: 'SIGTERM', flags: [], isAnnounced: true },
  {
    title: 'stopped without notice, with Retry-After',
    signal: 'SIGTERM',
    flags: ['--shutdown-send-retry-after=true', '--shutdown-delay-duration=0s'],
    isAnnounced: false,
  },
  { title: 'killed', signal: 'SIGKILL', flags: [], isAnnounced: false },
]

for (const roll of ROLLS) {
  test(`events that ${SIZE.recorders} recorders got acknowledged are stored once, with replicas ${roll.title} in rotation`, {
    skip: whyNot,
  }, async (t) => {
    await buildProgram()
    await using replicas = await Replicas.start(2, roll.flags)
    await using balancer = await Balancer.start(portsOf(replicas, [0, 1]))
    const burst = new Burst(balancer.port, SIZE)
    let restarts = 0
    for (; burst.isWriting; restarts++) {
      await restart({ replicas, balancer, index: restarts % 2, roll })
      await sleep(PAUSE_MS)
    }
    const report = await burst.done
    t.diagnostic(`${restarts} restarts; ${JSON.stringify(report)}`)
    assert.deepEqual(report.missing, [], 'acknowledged, and not stored')
    assert.deepEqual(report.twice, [], 'stored twice')
    assert.equal(report.unsettled, 0)
    assertFewRefused(report)
    assert.ok(restarts >= 2, `only ${restarts} restarts meanwhile`)
  })
}

test(`${SIZE.recorders} recorders retry as asked by the server while etcd is down`, {
  skip: whyNot,
}, async (t) => {
  await buildProgram()
  await using replicas = await Replicas.start(1)
  const burst = new Burst(replicas.server(0).port, SIZE)
  await sleep(PAUSE_MS)
  const [member] = replicas.etcd.members
  await member?.kill()
  await sleep(OUTAGE_MS)
  await member?.start()
  const report = await burst.done
  t.diagnostic(JSON.stringify(report))
  assert.deepEqual(report.missing, [], 'acknowledged, and not stored')
  assert.deepEqual(report.twice, [], 'stored twice')
  assert.equal(report.unsettled, 0)
  assert.ok(report.turnedAway > 0, 'no recorder was asked to retry')
  assertFewRefused(report)
})

/** A recorder gives up only when the result of its write is unknown. */
function assertFewRefused({ refused }: BurstReport): void {
  assert.deepEqual(
    refused.filter((words) => !words.includes('Timeout: request did not complete')),
    [],
  )
  const share = refused.length / SIZE.events
  assert.ok(share <= REFUSED_SHARE_MAX, `${refused.length} of ${SIZE.events} were refused`)
}

async function restart(parts: {
  readonly replicas: Replicas
  readonly balancer: Balancer
  readonly index: number
  readonly roll: Roll
}): Promise<void> {
  const { replicas, balancer, index, roll } = parts
  const server = replicas.server(index)
  const goOn = (): void => balancer.rotate(portsOf(replicas, [1 - index]))
  if (roll.isAnnounced) goOn()
  server.kill(roll.signal)
  await server.ended
  goOn()
  await replicas.startOne(index)
  balancer.rotate(portsOf(replicas, [0, 1]))
}

function portsOf(replicas: Replicas, indexes: readonly number[]): number[] {
  return indexes.map((index) => replicas.server(index).port)
}
