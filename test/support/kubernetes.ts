/**
 * A real Kubernetes control plane: an API server with controller manager and scheduler. No kubelet,
 * so pods stay unscheduled.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { EventClient } from './event-client.ts'
import {
  KUBE_ADMIN_TOKEN,
  KubeApiserver,
  kubeApiserverBinary,
  SIGNING_KEY_FILE,
} from './kube-apiserver.ts'

const managerUser = { token: 'manager-token', user: 'system:kube-controller-manager' }
const schedulerUser = { token: 'scheduler-token', user: 'system:kube-scheduler' }

/**
 * Controller manager and scheduler: named by KUBE_CONTROLLER_MANAGER and KUBE_SCHEDULER, or in the
 * folder of KUBE_APISERVER.
 */
function controllerBinaries(): { readonly manager: string; readonly scheduler: string } {
  const { env } = process
  const folder = dirname(kubeApiserverBinary)
  return {
    manager: env['KUBE_CONTROLLER_MANAGER'] ?? join(folder, 'kube-controller-manager'),
    scheduler: env['KUBE_SCHEDULER'] ?? join(folder, 'kube-scheduler'),
  }
}

/** What is missing to start a control plane; undefined when nothing is. */
export function missingOfKubernetes(): string | undefined {
  if (kubeApiserverBinary === '') return 'KUBE_APISERVER=/path/to/kube-apiserver is not set'
  const wanted = [kubeApiserverBinary, ...Object.values(controllerBinaries())]
  const absent = wanted.filter((path) => !existsSync(path))
  return absent.length === 0 ? undefined : `there is no ${absent.join(', ')}`
}

export class Kubernetes implements AsyncDisposable {
  readonly api: KubeApiserver
  readonly #controllers: ChildProcess[] = []

  /** `eventTtl` as for the flag of the API server. */
  static async start({ eventTtl }: { readonly eventTtl: string }): Promise<Kubernetes> {
    const api = await KubeApiserver.start({
      tokens: [managerUser, schedulerUser],
      hasAdmission: true,
      flags: [
        `--event-ttl=${eventTtl}`,
        // Tests decide when the history of etcd is compacted.
        '--etcd-compaction-interval=0',
        // After SIGTERM it waits this long for watches, which end only with it.
        '--request-timeout=5s',
      ],
    })
    const kubernetes = new Kubernetes(api)
    await kubernetes.#startControllers()
    return kubernetes
  }

  private constructor(api: KubeApiserver) {
    this.api = api
  }

  /** A connection with all permissions. */
  client(): Promise<EventClient> {
    const { port, ca } = this.api
    return EventClient.open({ port, ca, token: KUBE_ADMIN_TOKEN })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#controllers.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill('SIGKILL')
        await once(child, 'exit')
      }),
    )
    await this.api[Symbol.asyncDispose]()
  }

  async #startControllers(): Promise<void> {
    const { manager, scheduler } = controllerBinaries()
    await this.#startController(manager, managerUser, [
      '--use-service-account-credentials=true',
      `--service-account-private-key-file=${join(this.api.folder, SIGNING_KEY_FILE)}`,
    ])
    await this.#startController(scheduler, schedulerUser, [])
  }

  /** Its log goes to a file in the folder. It never outlives this process. */
  async #startController(
    binary: string,
    { token, user }: { readonly token: string; readonly user: string },
    flags: readonly string[],
  ): Promise<void> {
    const { folder } = this.api
    const kubeconfig = join(folder, `${user.replace('system:', '')}.kubeconfig`)
    await writeFile(kubeconfig, this.api.kubeconfig(token), { mode: 0o600 })
    const common = [`--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0']
    const command = ['--pdeathsig', 'KILL', binary, ...common, ...flags]
    const child = spawn('setpriv', command, { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr?.pipe(createWriteStream(`${kubeconfig}.log`))
    this.#controllers.push(child)
  }
}
