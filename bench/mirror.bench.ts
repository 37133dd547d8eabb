/**
 * What a mirror costs: the first copy of an origin with many events, many idle clusters, and the
 * delay of single events. Origin and mirror are two servers with an etcd each; with KUBE_APISERVER
 * the first copy is also made from a real Kubernetes.
 *
 *   npm run bench -- mirror                               100,000 events, 50 clusters, 60 s of lag
 *   node bench/mirror.bench.ts 20000 10 10 sync,lag    less, and only some parts
 *
 * Prints for each target whether it was met, and exits with 1 when one was missed.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventClient, EventWatch } from '../test/support/event-client.ts'
import {
  KUBE_ADMIN_TOKEN,
  KubeApiserver,
  kubeApiserverBinary,
} from '../test/support/kube-apiserver.ts'
import { kubeconfig, mirrorsFlag, untilFollowing } from '../test/support/mirrors.ts'
import { ADMIN_TOKEN, Replicas } from '../test/support/replicas.ts'
import { residentKib } from '../test/support/server-memory.ts'
import { Tidings } from '../test/support/tidings.ts'
import { benchEvent } from './memory/events.ts'
import { Figures } from './memory/figures.ts'

const [countText = '100000', clustersText = '50', secondsText = '60', partsText] =
  process.argv.slice(2)
const count = Number(countText)
const idleClusters = Number(clustersText)
const lagSeconds = Number(secondsText)
const parts = (partsText ?? 'sync,kubernetes,idle,lag').split(',')

const writersAtOnce = 80
const lagPerSecond = 500
const syncMsMax = 600_000
const idleMs = 20_000
/** Statuses of a server on a busy machine. */
const later = new Set([429, 503, 504])
const ticksPerSecond = 100
const figures = new Figures()
const hook = join(import.meta.dirname, 'support/loop-report.ts')
const unlimited = [
  '--max-mutating-requests-inflight=0',
  '--max-requests-inflight=0',
  '--max-write-bytes-per-second=0',
]

if (parts.includes('sync') || parts.includes('lag') || parts.includes('idle')) {
  await using origin = await Replicas.start(1, unlimited)
  const { port, ca } = origin.server(0)
  const server = (path: string) => kubeconfig(`https://127.0.0.1:${port}${path}`, ca, ADMIN_TOKEN)
  if (parts.includes('idle')) await measureIdle((index) => server(`/clusters/c-${index}`))
  if (parts.includes('lag')) await measureLag(origin, server(''))
  if (parts.includes('sync')) {
    using client = await origin.client(0)
    await load(client)
    await measureSync('a second tidings', server(''))
  }
}
if (parts.includes('kubernetes') && kubeApiserverBinary !== '') {
  await using origin = await KubeApiserver.start()
  const { port, ca } = origin
  using client = await EventClient.open({ port, ca, token: KUBE_ADMIN_TOKEN })
  await load(client)
  await measureSync('Kubernetes', origin.kubeconfig(KUBE_ADMIN_TOKEN))
}
process.exitCode = figures.areMet ? 0 : 1

/** A replica that mirrors, beside one that only holds the same events. */
async function measureSync(what: string, config: string): Promise<void> {
  await using site = await Replicas.start(0)
  const flag = await mirrorsFlag(site.folder, { origin: config })
  const report = join(site.folder, 'loop.json')
  const start = (file: string, ...flags: readonly string[]) =>
    Tidings.start(
      [
        `--etcd-servers=${site.etcd.endpoints.join(',')}`,
        `--token-auth-file=${join(site.folder, 'tokens.csv')}`,
        ...flags,
      ],
      { NODE_OPTIONS: `--import=${hook}`, LOOP_REPORT: file },
    )
  await using plain = await start(`${report}.plain`)
  await plain.until('/readyz', ({ status }) => status === 200, syncMsMax)
  const startedAt = performance.now()
  await using mirroring = await start(report, flag)
  await mirroring.until('/readyz', ({ status }) => status === 200, syncMsMax)
  mirroring.kill('SIGUSR2')
  plain.kill('SIGUSR2')
  await untilFollowing([mirroring], ['origin'], syncMsMax)
  const seconds = (performance.now() - startedAt) / 1000
  const [mirrorLoop, plainLoop] = await Promise.all([
    loopReport(report),
    loopReport(`${report}.plain`),
  ])
  const cpu = await cpuSeconds(mirroring)
  const peaks = await Promise.all([peakMib(mirroring), peakMib(plain)])
  using client = await EventClient.open({ port: plain.port, ca: plain.ca, token: ADMIN_TOKEN })
  const held = await countOf(client, '/clusters/origin')
  if (held !== count) throw new Error(`${held} of ${count} events were mirrored`)
  // Only one process of a machine can have the inspector open.
  const mirroringMib = (await residentKib(mirroring)) / 1024
  await mirroring[Symbol.asyncDispose]()
  const plainMib = (await residentKib(plain)) / 1024
  const said = `first copy of ${count} events from ${what}`
  figures.check(`${said}, from the start of the process`, seconds, { atMost: 90, unit: 's' })
  figures.check(`${said}: event loop blocked, CPU time`, mirrorLoop.ownMs, {
    atMost: 50,
    unit: 'ms',
  })
  for (const [whose, loop] of Object.entries({ mirroring: mirrorLoop, plain: plainLoop })) {
    const { ownMs, longestMs, collectionMs } = loop
    say(
      `  event loop of the ${whose} replica blocked: CPU time ${ownMs.toFixed(0)} ms, ` +
        `elapsed ${longestMs.toFixed(0)} ms, garbage collection ${collectionMs.toFixed(0)} ms`,
    )
  }
  say(`  CPU time of the mirroring replica: ${cpu.toFixed(1)} s`)
  say(`  peak resident: ${peaks.map((mib) => mib.toFixed(0)).join(' MiB, without mirror ')} MiB`)
  say(
    `  resident after collection: ${mirroringMib.toFixed(0)} MiB, without ${plainMib.toFixed(0)} MiB`,
  )
  const extra = { atMost: 64, unit: 'MiB' }
  figures.check(`${said}: extra memory, after collection`, mirroringMib - plainMib, extra)
  figures.check(`${said}: extra memory, peaks`, (peaks[0] ?? 0) - (peaks[1] ?? 0), extra)
}

/** Resident memory with so many idle mirrors, relative to none. */
async function measureIdle(config: (index: number) => string): Promise<void> {
  const configs = Object.fromEntries(
    Array.from({ length: idleClusters }, (_, index) => [`c-${index}`, config(index)]),
  )
  const without = await residentWith({})
  const all = await residentWith(configs)
  const each = (all - without) / idleClusters
  say(
    `  ${all.toFixed(0)} MiB with ${idleClusters} idle mirrors, ${without.toFixed(0)} MiB with none`,
  )
  figures.check('memory of an idle mirror', each, { atMost: 10, unit: 'MiB' })
}

async function residentWith(configs: Readonly<Record<string, string>>): Promise<number> {
  await using replicas = await Replicas.start(0)
  const server = await replicas.startOne(0, [await mirrorsFlag(replicas.folder, configs)])
  await untilFollowing([server], Object.keys(configs), syncMsMax)
  await sleep(idleMs)
  return (await residentKib(server)) / 1024
}

/** Measures the time from the response to a create at the origin until a watch of the mirror shows the event. */
async function measureLag(origin: Replicas, config: string): Promise<void> {
  await using target = await Replicas.start(0)
  const flag = await mirrorsFlag(target.folder, { origin: config })
  const server = await target.startOne(0, [flag])
  await untilFollowing([server], ['origin'], syncMsMax)
  using writing = await origin.client(0)
  using reading = await target.client(0)
  const acknowledged = new Map<string, number>()
  const seen = new Map<string, number>()
  const path = '/clusters/origin/apis/events.k8s.io/v1/events?watch=1'
  const watch = new EventWatch(reading.send({ path }))
  const watching = (async () => {
    for await (const { object } of watch) seen.set(object.metadata.name, performance.now())
  })()
  const startedAt = performance.now()
  const total = lagSeconds * lagPerSecond
  let next = 0
  const writer = async (): Promise<void> => {
    for (let n = next++; n < total; n = next++) {
      const waitMs = startedAt + (n / lagPerSecond) * 1000 - performance.now()
      if (waitMs > 1) await sleep(waitMs)
      await create(writing, n)
      acknowledged.set(benchEvent(n).key.name, performance.now())
    }
  }
  await Promise.all(Array.from({ length: writersAtOnce }, writer))
  const rate = total / ((performance.now() - startedAt) / 1000)
  const deadline = performance.now() + 60_000
  while (seen.size < total && performance.now() < deadline) await sleep(100)
  watch[Symbol.dispose]()
  await watching.catch(() => {})
  if (seen.size < total) throw new Error(`${seen.size} of ${total} events were seen`)
  const lags = [...acknowledged].map(([name, at]) => Math.max(0, (seen.get(name) ?? 0) - at))
  lags.sort((one, other) => one - other)
  const at = (share: number): number => (lags[Math.floor((lags.length - 1) * share)] ?? 0) / 1000
  say(
    `  lag at ${rate.toFixed(0)} events a second: p50 ${at(0.5).toFixed(3)} s, most ${at(1).toFixed(3)} s`,
  )
  figures.check('lag, p99', at(0.99), { atMost: 2, unit: 's' })
}

async function load(client: EventClient): Promise<void> {
  let next = 0
  const writer = async (): Promise<void> => {
    while (next < count) await create(client, next++)
  }
  await Promise.all(Array.from({ length: writersAtOnce }, writer))
}

async function create(client: EventClient, n: number): Promise<void> {
  const { key, body: stored } = benchEvent(n)
  const path = `/apis/events.k8s.io/v1/namespaces/${key.namespace}/events`
  const headers = { 'content-type': 'application/json' }
  const body = creatable(stored)
  for (;;) {
    const { status, body: text } = await client.request({ method: 'POST', path, headers, body })
    // The name exists: an earlier attempt with an unknown result was applied.
    if (status === 201 || status === 409) return
    if (!later.has(status)) throw new Error(`a create got status ${status}: ${text}`)
    await sleep(100)
  }
}

/** Removes the deprecated fields, which a create may not set. */
function creatable(stored: Buffer): string {
  const event: Record<string, unknown> = JSON.parse(stored.toString())
  for (const name of Object.keys(event)) if (name.startsWith('deprecated')) delete event[name]
  return JSON.stringify({ ...event, note: `${event['note']} ${'.'.repeat(100)}` })
}

async function countOf(client: EventClient, prefix: string): Promise<number> {
  const path = `${prefix}/api/v1/events?limit=1`
  const { metadata, items } = JSON.parse((await client.request({ path })).body.toString('utf8'))
  return items.length + (metadata.remainingItemCount ?? 0)
}

async function loopReport(path: string): Promise<{
  readonly longestMs: number
  readonly ownMs: number
  readonly collectionMs: number
}> {
  return JSON.parse(await readFile(path, 'utf8'))
}

async function cpuSeconds({ process: { pid } }: Tidings): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat.split(' ').slice(13, 15).map(Number)
  return (user + system) / ticksPerSecond
}

async function peakMib({ process: { pid } }: Tidings): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
