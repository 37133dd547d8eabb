import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEtcd } from './etcd.ts'
import { type Answer, Tidings } from './tidings.ts'
import { makeEvent } from './wire-event.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const MASTER = { authorization: 'Bearer master', 'content-type': 'application/json' }
const READY_MS_MAX = 15_000
/** The limit below, and so many at once that the writer is among the top sources. */
const BURST = 100

const TOKENS = `master,admin,1,"system:masters"
prometheus,prometheus,2
`
const AUDIT = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Metadata }]\n'
/** Nobody listens there. */
const TRACING =
  'apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:1\n'
const LIMITS = `apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits: [{ type: User, qps: 1, burst: ${BURST} }]
`
const CLUSTERS = `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
  - { name: prod, kubeconfig: prod.kubeconfig, mirror: { owners: true } }
`
const RETENTION = `apiVersion: tidings.dev/v1alpha1
kind: RetentionPolicy
rules: [{ name: brief, type: Warning, lifetime: 1s }]
budgets: [{ name: small, per: Namespace, events: 20 }]
`

/** A replica with every feature that has metrics of its own, and clients that use it. */
export class MonitoredServer {
  readonly server: Tidings
  #created = 0

  /** Everything that is started is stopped by `rest`. */
  static async start(rest: AsyncDisposableStack): Promise<MonitoredServer> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-monitored-'))
    rest.defer(() => rm(folder, { recursive: true, force: true }))
    const etcd = rest.use(await startEtcd())
    const write = async (name: string, content: string): Promise<string> => {
      await writeFile(join(folder, name), content, { mode: 0o600 })
      return join(folder, name)
    }
    const common = [
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${await write('tokens.csv', TOKENS)}`,
    ]
    const origin = rest.use(await Tidings.start([...common, '--etcd-prefix=/origin']))
    await write('prod.kubeconfig', kubeconfigOf(origin))
    const server = rest.use(
      await Tidings.start([
        ...common,
        `--rbac-policy-path=${join(import.meta.dirname, '../../deploy/roles/monitoring.yaml')}`,
        `--clusters-file=${await write('clusters.yaml', CLUSTERS)}`,
        `--retention-policy-file=${await write('retention.yaml', RETENTION)}`,
        `--audit-policy-file=${await write('audit.yaml', AUDIT)}`,
        `--audit-log-path=${join(folder, 'audit.log')}`,
        `--tracing-config-file=${await write('tracing.yaml', TRACING)}`,
        `--history=file://${join(folder, 'history')}`,
        '--history-segment-interval=1s',
        '--proxy-protocol-from=192.0.2.1',
        `--event-rate-limit-config-file=${await write('limits.yaml', LIMITS)}`,
      ]),
    )
    for (const each of [origin, server]) {
      await each.until('/readyz', ({ status }) => status === 200, READY_MS_MAX)
    }
    const made = new MonitoredServer(server)
    await origin.ask(EVENTS, made.#creation())
    // Beyond the limit, so that the last ones are refused.
    await Promise.all(Array.from({ length: BURST + 10 }, () => made.#create()))
    return made
  }

  private constructor(server: Tidings) {
    this.server = server
  }

  /** Requests with each outcome that is shown; the status codes, in order. */
  async use(): Promise<readonly number[]> {
    const { server } = this
    const answers = [
      await this.#create(),
      await this.#create(),
      await server.ask(EVENTS, { headers: MASTER }),
      await server.ask(`${EVENTS}/event-1`, { headers: MASTER }),
      await server.ask(`${EVENTS}?watch=1&timeoutSeconds=1`, { headers: MASTER }),
      await server.ask(`/clusters/prod${EVENTS}`, { headers: MASTER }),
      await server.ask(EVENTS),
    ]
    return answers.map(({ status }) => status)
  }

  #create(): Promise<Answer> {
    return this.server.ask(EVENTS, this.#creation())
  }

  #creation(): { method: string; headers: typeof MASTER; body: string } {
    this.#created++
    const type = this.#created % 2 === 0 ? 'Warning' : 'Normal'
    const event = { ...makeEvent('shop', `event-${this.#created}`), type }
    return { method: 'POST', headers: MASTER, body: JSON.stringify(event) }
  }
}

function kubeconfigOf({ port, folder }: Tidings): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'c',
        cluster: {
          server: `https://127.0.0.1:${port}`,
          'certificate-authority': join(folder, 'tidings.crt'),
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'master' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })
}
