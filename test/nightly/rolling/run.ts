/**
 * Restarts three replicas behind haproxy one after the other, while HTTP/2 clients write and read
 * all the time, and counts how requests ended: `npm run test:rolling -- [rounds]`. REFUSED_STREAM
 * means that a request was not processed and may be retried; a failed connection, that it was not
 * sent. Both are retried, and then no request may have failed.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeSelfSigned } from '../../../src/http/tls/self-signed.ts'
import { startEtcd } from '../../support/etcd.ts'
import { configurationIn, PROXY_ADDRESS, RealProxy, reservePort } from '../../support/proxies.ts'
import { Tidings } from '../../support/tidings.ts'
import { type Outcome, RollingClient } from './http2-client.ts'

const CLIENTS = 20
const IN_FLIGHT = 2
const TOKEN = 'rolling'
const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const rounds = Number(process.argv[2] ?? 1)

const folder = await mkdtemp(join(tmpdir(), 'tidings-rolling-'))
await using rest = new AsyncDisposableStack()
rest.defer(() => rm(folder, { recursive: true, force: true }))
const { cert, key } = await makeSelfSigned(['localhost', '127.0.0.1'])
await writeFile(join(folder, 'serving.crt'), cert)
await writeFile(join(folder, 'serving.key'), key, { mode: 0o600 })
await writeFile(join(folder, 'tokens.csv'), `${TOKEN},admin,1,system:masters\n`, { mode: 0o600 })
const etcd = rest.use(await startEtcd())
const ports = [await reservePort(), await reservePort(), await reservePort()]
const replicas: (Tidings | undefined)[] = []
rest.defer(async () => {
  for (const replica of replicas) await replica?.[Symbol.asyncDispose]()
})
for (const index of ports.keys()) await start(index)
const proxy = rest.use(
  await RealProxy.haproxy({
    configuration: configurationIn('haproxy'),
    ports,
    files: { 'tidings-ca.crt': cert },
  }),
)
// haproxy has to detect the replicas first.
await sleep(4000)

const counts = new Map<Outcome, number>()
let isDone = false
let written = 0
let failures = 0
const clients = Array.from({ length: CLIENTS }, () => {
  return new RollingClient({ port: proxy.port, ca: cert, token: TOKEN })
})
const load = clients.flatMap((client) => Array.from({ length: IN_FLIGHT }, () => drive(client)))
await sleep(2000)
for (let round = 0; round < rounds; round++) {
  for (const index of ports.keys()) {
    replicas[index]?.kill('SIGTERM')
    await replicas[index]?.ended
    await start(index)
    await sleep(3000)
  }
}
isDone = true
await Promise.all(load)
for (const client of clients) client[Symbol.dispose]()
report()

async function start(index: number): Promise<void> {
  await replicas[index]?.[Symbol.asyncDispose]()
  const replica = await Tidings.start([
    `--etcd-servers=${etcd.endpoints[0]}`,
    `--secure-port=${ports[index]}`,
    `--tls-cert-file=${folder}/serving.crt`,
    `--tls-private-key-file=${folder}/serving.key`,
    `--token-auth-file=${folder}/tokens.csv`,
    `--proxy-protocol-from=${PROXY_ADDRESS}`,
    '--authorization-always-allow-paths=/readyz',
    '--shutdown-delay-duration=5s',
  ])
  replicas[index] = replica
  await replica.until('/readyz', ({ status }) => status === 200, 60_000)
}

async function drive(client: RollingClient): Promise<void> {
  while (!isDone) {
    const name = `rolling.${written++}`
    const create = () => client.request('POST', EVENTS, JSON.stringify(event(name)))
    const get = () => client.request('GET', `${EVENTS}/${name}`)
    if ((await counted(create)) !== 201 || (await counted(get)) !== 200) failures += 1
    // At the rate of a busy recorder, not as fast as possible.
    await sleep(Math.random() * 100)
  }
}

/** Retries requests that were not processed, as clients should; all attempts are counted. */
async function counted(send: () => Promise<Outcome>): Promise<Outcome> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await send()
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
    if ((outcome !== 'refused-stream' && outcome !== 'not-sent') || attempt === 5) return outcome
    if (outcome === 'not-sent') await sleep(100)
  }
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
    `${total} requests of ${CLIENTS} clients during ${rounds * ports.length} restarts\n` +
      [...counts.keys()].map((outcome) => `  ${outcome}: ${share(outcome)}\n`).join(''),
  )
  process.stdout.write(
    `  failed after up to five attempts of requests that may be retried: ${failures}\n`,
  )
  if (failures > 0) process.exitCode = 1
}
