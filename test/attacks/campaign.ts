/**
 * Runs every attack against a server with a small heap, by turns with a quiet time before each, and
 * measures its memory and how long others wait.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEtcd } from '../support/etcd.ts'
import { openClient } from '../support/http-client.ts'
import { Tidings } from '../support/tidings.ts'
import { ATTACKS, type Attack, NO_RIGHTS, READER, type Size } from './attacks.ts'

const MIB = 1024
const HEAP_MIB = 512
/** What memory may grow by under attack, in MiB. */
export const GROWTH_MAX = { unauthenticated: 64, authenticated: 256 } as const
const OTHER = 'tok-other'
const PROBE_PAUSE_MS = 10

export interface Outcome {
  readonly attack: Attack
  readonly grownMib: number
  /** How many times as long as in the quiet time the slowest hundredth takes. */
  readonly probeRatio: number
  readonly userRatio: number
  readonly failures: number
}

export interface CampaignOptions {
  readonly size: Omit<Size, 'longPath'>
  /** Of each quiet time, and of each attack after it has been mounted. */
  readonly ms: number
  readonly attacks?: readonly Attack[]
  readonly onOutcome?: (outcome: Outcome) => void
}

export async function campaign(options: CampaignOptions): Promise<readonly Outcome[]> {
  await using cleanup = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'tidings-attacks-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const [tokens, policy] = [join(folder, 'tokens.csv'), join(folder, 'policy.yaml')]
  const users = [`${NO_RIGHTS},none,1`, `${READER},reader,2,readers`, `${OTHER},other,3,readers`]
  await writeFile(tokens, `${users.join('\n')}\n`)
  await writeFile(policy, POLICY)
  await using etcd = await startEtcd()
  const flags = [
    `--etcd-servers=${etcd.endpoints[0]}`,
    `--token-auth-file=${tokens}`,
    `--rbac-policy-path=${policy}`,
  ]
  const env = { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` }
  await using server = await Tidings.start(flags, env)
  await server.until('/readyz', ({ status }) => status === 200, 20_000)
  const size: Size = { ...options.size, longPath: '/openapi/v2' }
  // What is allocated once is no growth: the code that answers, and room for new objects.
  for (let turn = 0; turn < 3; turn++) await quiet(server, options.ms)
  const outcomes: Outcome[] = []
  for (const attack of options.attacks ?? ATTACKS) {
    const before = await quiet(server, options.ms)
    const during = await under(attack, { server, size, ms: options.ms })
    const outcome: Outcome = {
      attack,
      grownMib: (during.peakKib - before.peakKib) / MIB,
      probeRatio: during.probe / before.probe,
      userRatio: during.user / before.user,
      failures: during.failures,
    }
    outcomes.push(outcome)
    options.onOutcome?.(outcome)
  }
  return outcomes
}

export function rowOf({ attack, grownMib, probeRatio, userRatio, failures }: Outcome): string {
  const who = attack.token === undefined ? 'unauthenticated' : attack.token
  return [
    attack.name.padEnd(36),
    who.padEnd(16),
    `${grownMib.toFixed(0)} MiB`.padStart(8),
    `probes ${probeRatio.toFixed(1)}`,
    `users ${userRatio.toFixed(1)}`,
    `failed ${failures}`,
  ].join('  ')
}

interface Seen {
  readonly peakKib: number
  /** The slowest hundredth, in ms. */
  readonly probe: number
  readonly user: number
  readonly failures: number
}

async function under(
  attack: Attack,
  { server, size, ms }: { readonly server: Tidings; readonly size: Size; readonly ms: number },
): Promise<Seen> {
  const watching = watch(server)
  using _held = await attack.run(server.port, size)
  await sleep(ms)
  return watching.stop()
}

async function quiet(server: Tidings, ms: number): Promise<Seen> {
  const watching = watch(server)
  await sleep(ms)
  return watching.stop()
}

function watch(server: Tidings): { stop(): Promise<Seen> } {
  let isOver = false
  let peakKib = 0
  let failures = 0
  const ask = async (path: string, headers: Record<string, string>): Promise<number> => {
    const times: number[] = []
    using client = await openClient('h2', server.port)
    // Once at least: without a figure of before, all memory would count as grown.
    do {
      const startedAt = performance.now()
      const { status } = await client.request({ path, headers })
      if (status !== 200) failures += 1
      times.push(performance.now() - startedAt)
      peakKib = Math.max(peakKib, residentKib(server))
      await sleep(PROBE_PAUSE_MS)
    } while (!isOver)
    times.sort((a, b) => a - b)
    return times[Math.floor(times.length * 0.99)] ?? 0
  }
  const probe = ask('/readyz', {})
  const user = ask('/apis/events.k8s.io/v1/namespaces/a/events?limit=1', {
    authorization: `Bearer ${OTHER}`,
  })
  return {
    stop: async () => {
      isOver = true
      return { probe: await probe, user: await user, peakKib, failures }
    },
  }
}

function residentKib(server: Tidings): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1])
}

const POLICY = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: readers}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:monitoring"}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: readers}]
`
