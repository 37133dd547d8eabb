/** A server for tests of the page: a real etcd, users with different permissions, and a story. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { TestBrowser } from './browser.ts'
import { type EtcdCluster, startEtcd } from './etcd.ts'
import { reservePort } from './ports.ts'
import { Tidings } from './tidings.ts'

/** Each token is the name of its user. */
export type PageUser = 'root' | 'viewer' | 'sam' | 'reader' | 'nobody'

const TOKENS =
  'root,root,1,system:masters\nviewer,viewer,2\nsam,sam,3\nnobody,nobody,4\nreader,reader,5\n'

const ROLES = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: User, name: viewer}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sam, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: User, name: sam}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: events-only}
rules: [{apiGroups: ["", events.k8s.io], resources: [events], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: events-only}
subjects: [{kind: User, name: reader}]
`

/** An event for the page, in short form. */
export interface PageEvent {
  readonly minutesAgo: number
  readonly type?: 'Normal' | 'Warning'
  readonly reason: string
  /** `Pod/web-0`: the object that it is about. */
  readonly object: string
  readonly note: string
  readonly namespace?: string
  readonly controller?: string
  /** More than 1: it was seen this often, over `overMinutes`. */
  readonly count?: number
  readonly overMinutes?: number
  /** Other members of the event, of core/v1. */
  readonly members?: object
}

export class PageServer implements AsyncDisposable {
  readonly etcd: EtcdCluster
  #tidings: Tidings
  readonly #flags: readonly string[]
  readonly #folder: string

  /** `fill` writes to etcd before the server starts. */
  static async start(
    flags: readonly string[] = [],
    fill?: (etcd: EtcdCluster) => Promise<void>,
  ): Promise<PageServer> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-page-'))
    // Room for a million events.
    const etcd = await startEtcd({ args: [`--quota-backend-bytes=${8 * 2 ** 30}`] })
    await fill?.(etcd)
    const tokens = join(folder, 'tokens.csv')
    const roles = join(folder, 'roles.yaml')
    await writeFile(tokens, TOKENS)
    await writeFile(roles, ROLES)
    const own = [
      `--etcd-servers=${etcd.endpoints.join(',')}`,
      `--token-auth-file=${tokens}`,
      `--rbac-policy-path=${roles}`,
      '--authorization-mode=RBAC',
      '--event-ttl=192h',
      // The same port after a restart.
      `--secure-port=${await reservePort()}`,
      ...flags,
    ]
    return new PageServer({ etcd, tidings: await startReady(own), flags: own, folder })
  }

  private constructor(parts: {
    etcd: EtcdCluster
    tidings: Tidings
    flags: readonly string[]
    folder: string
  }) {
    this.etcd = parts.etcd
    this.#tidings = parts.tidings
    this.#flags = parts.flags
    this.#folder = parts.folder
  }

  get tidings(): Tidings {
    return this.#tidings
  }

  /** Ends the server and starts it again, on the same port. */
  async restart(): Promise<void> {
    this.#tidings.kill('SIGTERM')
    await this.#tidings.ended
    await this.#tidings[Symbol.asyncDispose]()
    this.#tidings = await startReady(this.#flags)
  }

  /** The URL of the server, without a path. */
  get base(): string {
    return `https://127.0.0.1:${this.tidings.port}`
  }

  /** Makes these tokens the only valid ones. */
  async setTokens(lines: string): Promise<void> {
    await writeFile(join(this.#folder, 'tokens.csv'), lines)
  }

  /** Creates events through the API, with times relative to `nowMs`. */
  async write(events: readonly PageEvent[], nowMs: number = Date.now()): Promise<void> {
    for (const short of events) {
      const event = coreEvent(short, nowMs)
      const { status, body } = await this.tidings.ask(
        `/api/v1/namespaces/${event.metadata.namespace}/events`,
        {
          method: 'POST',
          headers: { authorization: 'Bearer root', 'content-type': 'application/json' },
          body: JSON.stringify(event),
        },
      )
      assert.equal(status, 201, body)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tidings[Symbol.asyncDispose]()
    await this.etcd[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** A million events are loaded first. */
const READY_MS_MAX = 300_000

async function startReady(flags: readonly string[]): Promise<Tidings> {
  const tidings = await Tidings.start(flags)
  await tidings.until('/readyz', ({ status }) => status === 200, READY_MS_MAX)
  return tidings
}

function coreEvent(
  short: PageEvent,
  nowMs: number,
): { readonly metadata: { readonly namespace: string } } {
  const { namespace = 'shop', count = 1, overMinutes = 0, object } = short
  const [kind, name] = object.split('/')
  const lastMs = nowMs - short.minutesAgo * 60_000
  return {
    metadata: { generateName: 'told-', namespace },
    type: short.type ?? 'Normal',
    reason: short.reason,
    message: short.note,
    involvedObject: { kind, name, namespace },
    source: { component: short.controller ?? 'kubelet' },
    firstTimestamp: timeOf(lastMs - overMinutes * 60_000),
    lastTimestamp: timeOf(lastMs),
    count,
    ...short.members,
  } as { readonly metadata: { readonly namespace: string } }
}

/** Timestamps of core/v1 have whole seconds. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** A server with these events and a browser, for all tests of a `describe`. */
export function withPage(events: readonly PageEvent[]): {
  readonly server: PageServer
  readonly browser: TestBrowser
} {
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    await server.write(events)
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  return {
    get server() {
      return server
    },
    get browser() {
      return browser
    },
  }
}
