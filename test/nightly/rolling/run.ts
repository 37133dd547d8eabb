/**
 * Restarts three replicas behind haproxy one after the other, while HTTP/2 clients write and read
 * all the time, and counts how requests ended: `npm test -- rolling [rounds]`. REFUSED_STREAM
 * means that a request was not processed and may be retried; a failed connection, that it was not
 * sent. Both are retried, and then no request may have failed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fleet } from './fleet.ts'
import { type Outcome, type RollingClient, retried } from './http2-client.ts'

const CLIENTS = 20
const IN_FLIGHT = 2
const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const rounds = Number(process.argv[2] ?? 1)

await using fleet = await Fleet.start()

const counts = new Map<Outcome, number>()
let isDone = false
let written = 0
let failures = 0
const clients = Array.from({ length: CLIENTS }, () => fleet.client())
const load = clients.flatMap((client) => Array.from({ length: IN_FLIGHT }, () => drive(client)))
await sleep(2000)
for (let round = 0; round < rounds; round++) {
  for (let index = 0; index < fleet.size; index++) await fleet.replace(index)
}
isDone = true
await Promise.all(load)
for (const client of clients) client[Symbol.dispose]()
report()

async function drive(client: RollingClient): Promise<void> {
  while (!isDone) {
    const name = `rolling.${written++}`
    const body = JSON.stringify(event(name))
    const create = () => client.send({ method: 'POST', path: EVENTS, body })
    const get = () => client.send({ method: 'GET', path: `${EVENTS}/${name}` })
    const created = await retried(create, count)
    const read = await retried(get, count)
    if (created.outcome !== 201 || read.outcome !== 200) failures += 1
    // The rate of a busy recorder, not as fast as possible.
    await sleep(Math.random() * 100)
  }
}

function count(outcome: Outcome): void {
  counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
}

function event(name: string): object {
  return {
    metadata: { name, namespace: 'shop' },
    eventTime: new Date().toISOString().replace('Z', '000Z'),
    reportingController: 'example.org/shop',
    reportingInstance: 'shop-0',
    action: 'Start',
    reason: 'Started',
    type: 'Normal',
    regarding: { kind: 'Pod', name: 'a', namespace: 'shop' },
  }
}

function report(): void {
  const total = [...counts.values()].reduce((sum, each) => sum + each, 0)
  const share = (outcome: Outcome): string => {
    const found = counts.get(outcome) ?? 0
    return `${found} (${((100 * found) / total).toFixed(3)} %)`
  }
  process.stdout.write(
    `${total} requests of ${CLIENTS} clients during ${rounds * fleet.size} restarts\n` +
      [...counts.keys()].map((outcome) => `  ${outcome}: ${share(outcome)}\n`).join(''),
  )
  process.stdout.write(
    `  failed after up to five attempts of requests that may be retried: ${failures}\n`,
  )
  if (failures > 0) process.exitCode = 1
}
