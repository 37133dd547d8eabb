/**
 * Runs attacks, each against its own server with a small heap, alternating with quiet periods, and
 * measures the memory of the server and the latency of other clients.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'
import { type Attack, LIST, SENDERS, tokensOf, USERS_MAX } from './attack.ts'
import { Bystanders, type Figures, type Waits } from './bystanders.ts'
import { mount } from './mount.ts'
import { event } from './requests.ts'

/** The heap settings of the unit file, with a small heap. */
const NODE_OPTIONS = '--max-old-space-size=512 --max-semi-space-size=8'
const MASTER = 'tok-master'
export const OTHER = 'tok-other'
/** Time for the server to notice that the attacker is gone. */
const SETTLE_MS = 2000
const GROUPS = { 'no rights': '', reader: 'readers', editor: 'editors' } as const
const SEEDED_EVENTS = 64
const SEEDED_BYTES = 16 * 1024

export interface Outcome {
  readonly attack: Attack
  /**
   * Growth of resident memory: the maximum under attack minus the maximum of the quiet period
   * before.
   */
  readonly grownMib: number
  /** The p99 latency under attack divided by that of quiet periods. */
  readonly probeRatio: number
  readonly userRatio: number
  readonly quiet: Waits
  readonly attacked: Waits
  readonly failures: number
  /** The longest event-loop tick, in ms. */
  readonly tickMs: number
}

export interface CampaignOptions {
  readonly attacks: readonly Attack[]
  /** 1 is full size. */
  readonly scale: number
  /** Rounds of a quiet and an attacked period. */
  readonly rounds: number
  /** The length of each quiet period, and of each attack after it has started. */
  readonly ms: number
  /** Requests before anything is measured, so that the heap has its working size. */
  readonly warmUpRequests: number
  readonly flags?: readonly string[]
  readonly onOutcome?: (outcome: Outcome) => void
}

export async function campaign(options: CampaignOptions): Promise<readonly Outcome[]> {
  await using cleanup = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'tidings-attacks-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const [tokens, policy] = [join(folder, 'tokens.csv'), join(folder, 'policy.yaml')]
  const users = [
    `${SENDERS['no rights']},none,1`,
    `${SENDERS.reader},reader,2,readers`,
    `${SENDERS.editor},editor,3,editors`,
    `${OTHER},other,4,editors`,
    `${MASTER},master,5,system:masters`,
    ...(['no rights', 'reader', 'editor'] as const).flatMap((sender) =>
      tokensOf(sender, USERS_MAX).map((token) => `${token},${token},${token},${GROUPS[sender]}`),
    ),
  ]
  await writeFile(tokens, `${users.join('\n')}\n`)
  await writeFile(policy, POLICY)
  const files = [`--token-auth-file=${tokens}`, `--rbac-policy-path=${policy}`]
  const outcomes: Outcome[] = []
  for (const attack of options.attacks) {
    const outcome = await endure(attack, options, files)
    outcomes.push(outcome)
    options.onOutcome?.(outcome)
  }
  return outcomes
}

/** Runs one attack, on a new server: memory that was once allocated is not returned. */
async function endure(
  attack: Attack,
  options: CampaignOptions,
  files: readonly string[],
): Promise<Outcome> {
  await using etcd = await startEtcd({ args: attack.etcdArgs })
  const flags = [`--etcd-servers=${etcd.endpoints[0]}`, ...files]
  await using server = await Tidings.start(
    [...flags, ...(attack.flags ?? []), ...(options.flags ?? [])],
    { NODE_OPTIONS },
  )
  await server.until('/readyz', ({ status }) => status === 200, 20_000)
  await seed(server)
  await using bystanders = await Bystanders.start(server, OTHER)
  // One-time allocations are not growth: loaded code, and the young generation of the heap.
  await bystanders.warmUp(options.warmUpRequests)
  const quiet: Figures[] = []
  const attacked: Figures[] = []
  await longestTick(server)
  for (let round = 0; round < options.rounds; round++) {
    quiet.push(await bystanders.during(() => sleep(options.ms)))
    attacked.push(
      await bystanders.during(async () => {
        await using _attacker = await mount(attack, server.port, options.scale)
        await sleep(options.ms)
      }),
    )
    await sleep(SETTLE_MS)
  }
  const tickMs = await longestTick(server)
  const before = Bystanders.waits(quiet)
  const during = Bystanders.waits(attacked)
  return {
    attack,
    grownMib: Math.max(...attacked.map(({ peakMib }) => peakMib)) - (quiet[0]?.peakMib ?? 0),
    probeRatio: during.probeMs / before.probeMs,
    userRatio: during.userMs / before.userMs,
    quiet: before,
    attacked: during,
    failures: attacked.reduce((sum, { failures }) => sum + failures, 0),
    tickMs,
  }
}

/** The longest tick since the last call, in ms. */
async function longestTick(server: Tidings): Promise<number> {
  const { body } = await server.ask('/metrics')
  return 1000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(body)?.[1])
}

async function seed(server: Tidings): Promise<void> {
  const create = async (namespace: string, name: string, bytes: number): Promise<void> => {
    const metadata = { name, namespace, annotations: { filler: 'x'.repeat(bytes) } }
    const { status } = await server.ask(LIST.replace('/a/', `/${namespace}/`), {
      method: 'POST',
      headers: { authorization: `Bearer ${MASTER}`, 'content-type': 'application/json' },
      body: JSON.stringify(event(metadata)),
    })
    if (status !== 201) throw new Error(`creating an initial event: ${status}`)
  }
  for (let n = 0; n < SEEDED_EVENTS; n++) await create('a', `seeded-${n}`, SEEDED_BYTES)
  await create('b', 'seeded', 100)
}

/** How much memory may grow under attack, in MiB. */
const GROWTH_MAX_MIB = { unauthenticated: 64, authenticated: 256 } as const
/** The highest allowed ratio of latencies. */
const RATIO_MAX = 3

/** The bounds that were exceeded. */
export function missed(outcome: Outcome): readonly string[] {
  const { attack, grownMib, probeRatio, userRatio, failures, tickMs } = outcome
  const isKnown = attack.sender !== 'unauthenticated'
  return [
    ...(grownMib > GROWTH_MAX_MIB[isKnown ? 'authenticated' : 'unauthenticated'] ? ['memory'] : []),
    ...(probeRatio > RATIO_MAX ? ['probes'] : []),
    ...(userRatio > RATIO_MAX ? ['requests'] : []),
    ...(tickMs > (attack.tickMsMax ?? Number.POSITIVE_INFINITY) ? ['longest tick'] : []),
    ...(failures > 0 ? ['failures'] : []),
  ]
}

export function rowOf(outcome: Outcome): string {
  const { attack, grownMib, probeRatio, userRatio, quiet, attacked, failures, tickMs } = outcome
  const wait = (before: number, during: number, ratio: number): string =>
    `${before.toFixed(1)} to ${during.toFixed(1)} ms, ${ratio.toFixed(1)}`
  return [
    attack.name,
    attack.sender,
    `${grownMib.toFixed(0)} MiB`,
    wait(quiet.userMs, attacked.userMs, userRatio),
    wait(quiet.probeMs, attacked.probeMs, probeRatio),
    `${tickMs.toFixed(0)} ms`,
    `${failures}`,
    `${quiet.samples}, ${attacked.samples}`,
  ].join(' | ')
}

export const HEADINGS =
  'attack | sender | memory | p99 of requests | p99 of probes | longest tick | failed | samples'

const POLICY = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: readers}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: editors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: editors}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:monitoring"}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: readers}]
`
