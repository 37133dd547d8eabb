/** Two replicas that a recorded night is written to, and one that starts afterwards and answers. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { EventClient } from './event-client.ts'
import { eventually } from './eventually.ts'
import { findKubectl, Kubectl } from './kubectl.ts'
import { mirrorsFlag, untilFollowing } from './mirrors.ts'
import {
  type Asked,
  checkHistograms,
  checkIncidents,
  type HistogramFigures,
  type Incident,
  type SentNight,
} from './night-answers.ts'
import type { NightEvent } from './recorded-night.ts'
import { ADMIN_TOKEN, Replicas } from './replicas.ts'
import type { Tidings } from './tidings.ts'

/** The name of the cluster that is mirrored. */
export const MIRRORED = 'mirrored'
const WRITTEN_TO = [0, 1] as const
const STARTED_LATER = 2
const FOLLOW_MS_MAX = 60_000
const COPIED_MS_MAX = 120_000

/** Why nights cannot be recorded here; false when they can. */
export const whyNotNight: string | false =
  (await findKubectl()) === undefined && 'there is no kubectl in PATH'

export class NightSite implements AsyncDisposable {
  readonly #replicas: Replicas
  readonly #stack: AsyncDisposableStack
  #later: Promise<Tidings> | undefined

  /** `kubeconfig` is that of the origin of a mirror, if there is one. */
  static async start(kubeconfig?: string): Promise<NightSite> {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'tidings-night-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const mirror =
      kubeconfig === undefined ? [] : [await mirrorsFlag(folder, { [MIRRORED]: kubeconfig })]
    const flags = ['--event-ttl=never', ...mirror]
    const replicas = stack.use(await Replicas.start(WRITTEN_TO.length, flags))
    const servers = WRITTEN_TO.map((index) => replicas.server(index))
    if (kubeconfig !== undefined) await untilFollowing(servers, [MIRRORED], FOLLOW_MS_MAX)
    return new NightSite(replicas, stack.move())
  }

  private constructor(replicas: Replicas, stack: AsyncDisposableStack) {
    this.#replicas = replicas
    this.#stack = stack
  }

  /** The address of a replica. */
  get server(): string {
    return `https://127.0.0.1:${this.#replicas.server(WRITTEN_TO[0]).port}`
  }

  /** A connection to each replica that is written to. They are closed with the site. */
  clients(): Promise<readonly EventClient[]> {
    return Promise.all(
      WRITTEN_TO.map(async (index) => this.#stack.use(await this.#replicas.client(index))),
    )
  }

  /** Resolves when the mirror has the last state of each of these events. */
  async untilCopied(events: readonly NightEvent[]): Promise<void> {
    const wanted = events.reduce((sum, { times }) => sum + times.length, 0)
    const [client] = await this.clients()
    const path = `/clusters/${MIRRORED}/apis/tidings.dev/v1alpha1/eventsummaries?groupBy=cluster`
    const isCopied = async (): Promise<boolean> => {
      const { body } = (await client?.request({ path })) ?? {}
      const { items } = JSON.parse(String(body))
      return items[0]?.occurrences === wanted
    }
    await eventually(`${wanted} occurrences are copied`, isCopied, COPIED_MS_MAX)
  }

  /** Checks what a replica says about the night that was started after it; reports the answers. */
  async check(
    t: Pick<TestContext, 'diagnostic'>,
    night: SentNight,
    cluster: string,
    incidents?: readonly Incident[],
  ): Promise<readonly HistogramFigures[]> {
    const asked = await this.#asked(cluster)
    const rows = await checkIncidents(night, asked, incidents)
    const figures = await checkHistograms(night, asked)
    for (const row of rows) t.diagnostic(row)
    for (const figure of figures) t.diagnostic(JSON.stringify(figure))
    return figures
  }

  async #asked(cluster: string): Promise<Asked> {
    this.#later ??= this.#replicas.startOne(STARTED_LATER)
    const server = await this.#later
    const kubectl = await Kubectl.as(ADMIN_TOKEN, server, (await findKubectl()) ?? '')
    return { kubectl, server: `https://127.0.0.1:${server.port}/clusters/${cluster}` }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}
