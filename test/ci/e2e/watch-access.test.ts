/**
 * A watch ends when the access of its caller does, and only then (difference from Kubernetes:
 * watches-end-with-access). The expiry of a certificate is only checked periodically, which takes
 * up to half a minute.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ClientAuthority } from '../../support/client-certs.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Tidings } from '../../support/tidings.ts'
import { makeEvent } from '../../support/wire-event.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
const WATCH = `${EVENTS}?watch=true&timeoutSeconds=9007199254740991`
/** Files are checked once a second. */
const SOON_MS = 10_000
const EXPIRED_WITHIN_MS = 60_000

interface Frame {
  readonly type: string
  readonly object: {
    readonly kind: string
    readonly code?: number
    readonly reason?: string
    readonly details?: { readonly retryAfterSeconds?: number }
    readonly metadata: { readonly name: string }
  }
}

describe('watches whose access ends', { concurrency: true }, () => {
  let folder: string
  let etcd: EtcdCluster
  let server: Tidings
  let authority: ClientAuthority

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-watch-access-'))
    authority = await ClientAuthority.create('clients')
    await put('clients.crt', authority.cert)
    await putTokens(['stays', 'leaves', 'demoted', 'impersonator'])
    await put(
      'roles.yaml',
      roles(['stays', 'leaves', 'demoted', 'carol', 'dora', 'emil'], ['impersonator']),
    )
    etcd = await startEtcd()
    server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${join(folder, 'tokens.csv')}`,
      `--rbac-policy-path=${join(folder, 'roles.yaml')}`,
      `--client-ca-file=${join(folder, 'clients.crt')}`,
    ])
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
  })
  after(async () => {
    await server[Symbol.asyncDispose]()
    await etcd[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  /** Replaced atomically by a rename. */
  async function put(name: string, content: string): Promise<void> {
    await writeFile(join(folder, `${name}.new`), content, { mode: 0o600 })
    await rename(join(folder, `${name}.new`), join(folder, name))
  }

  function putTokens(users: readonly string[]): Promise<void> {
    return put('tokens.csv', users.map((user) => `token-of-${user},${user},${user}\n`).join(''))
  }

  async function watch(options: https.RequestOptions): Promise<Watch> {
    const request = https.get({
      host: '127.0.0.1',
      port: server.port,
      ca: server.ca,
      agent: false,
      path: WATCH,
      ...options,
    })
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    assert.equal(answer.statusCode, 200)
    return new Watch(answer)
  }

  const bearer = (user: string): https.RequestOptions => ({
    headers: { authorization: `Bearer token-of-${user}` },
  })

  async function create(name: string): Promise<void> {
    const body = JSON.stringify(makeEvent('default', name))
    const headers = { authorization: 'Bearer token-of-stays', 'content-type': 'application/json' }
    const { status } = await server.ask(EVENTS, { method: 'POST', headers, body })
    assert.equal(status, 201)
  }

  test('revoked tokens, bindings, impersonators and certificates end their watches', async () => {
    const shortLived = await authority.issue('carol', { endsInMs: 12_000 })
    const other = await ClientAuthority.create('others')
    await put('clients.crt', `${authority.cert}\n${other.cert}`)
    const fromOther = await other.issue('dora')
    await eventually('both authorities are loaded', async () => {
      const known = await watch({ ...fromOther }).catch(() => undefined)
      known?.close()
      return known !== undefined
    })
    const [stays, leaves, demoted, carol, dora, emil] = await Promise.all([
      watch(bearer('stays')),
      watch(bearer('leaves')),
      watch(bearer('demoted')),
      watch({ ...shortLived }),
      watch({ ...fromOther }),
      watch({
        headers: { authorization: 'Bearer token-of-impersonator', 'impersonate-user': 'emil' },
      }),
    ])
    const all = [stays, leaves, demoted, carol, dora, emil]
    await create('first')
    await eventually('all receive it', () =>
      all.every(({ received }) => received.includes('first')),
    )

    await Promise.all([
      putTokens(['stays', 'demoted', 'impersonator']),
      put('roles.yaml', roles(['stays', 'leaves', 'carol', 'dora', 'emil'], [])),
      put('clients.crt', authority.cert),
    ])
    const revoked = [leaves, demoted, dora, emil]
    await eventually('they end', () => revoked.every(({ isOver }) => isOver), SOON_MS)
    assert.deepEqual(
      revoked.map(({ last }) => [
        last?.type,
        last?.object.kind,
        last?.object.code,
        last?.object.reason,
      ]),
      [
        ['ERROR', 'Status', 401, 'Unauthorized'],
        ['ERROR', 'Status', 403, 'Forbidden'],
        ['ERROR', 'Status', 401, 'Unauthorized'],
        ['ERROR', 'Status', 403, 'Forbidden'],
      ],
    )
    assert.ok(revoked.every(({ last }) => last?.object.details?.retryAfterSeconds === undefined))
    await create('second')
    await eventually('the remaining watch receives it', () => stays.received.includes('second'))
    assert.ok(revoked.every(({ received }) => !received.includes('second')))

    await eventually('the certificate expires', () => carol.isOver, EXPIRED_WITHIN_MS)
    assert.deepEqual([carol.last?.type, carol.last?.object.code], ['ERROR', 401])
    await create('third')
    await eventually('the remaining watch receives it again', () =>
      stays.received.includes('third'),
    )
    assert.deepEqual(
      stays.frames.map(({ type }) => type),
      ['ADDED', 'ADDED', 'ADDED'],
    )
    const { body } = await server.ask('/metrics')
    assert.match(body, /^tidings_watches_ended_total\{reason="Unauthorized"\} 3$/m)
    assert.match(body, /^tidings_watches_ended_total\{reason="Forbidden"\} 2$/m)
    stays.close()
  })
})

function roles(watchers: readonly string[], impersonators: readonly string[]): string {
  const binding = (role: string, users: readonly string[]): string => `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ${role}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${role}}
subjects: [${users.map((name) => `{apiGroup: rbac.authorization.k8s.io, kind: User, name: ${name}}`).join(', ')}]
`
  return `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: watchers}
rules: [{apiGroups: [events.k8s.io], resources: [events], verbs: [watch, create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: impersonators}
rules: [{apiGroups: [''], resources: [users], verbs: [impersonate]}]
${binding('watchers', watchers)}${impersonators.length === 0 ? '' : binding('impersonators', impersonators)}`
}

/** What a watcher has received so far. */
class Watch {
  readonly frames: Frame[] = []
  isOver = false
  readonly #answer: IncomingMessage

  constructor(answer: IncomingMessage) {
    this.#answer = answer
    let rest = ''
    answer.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.frames.push(JSON.parse(line))
    })
    answer.on('end', () => {
      this.isOver = true
    })
    answer.on('error', () => {})
  }

  get received(): readonly string[] {
    return this.frames.map(({ object }) => object.metadata.name)
  }

  get last(): Frame | undefined {
    return this.frames.at(-1)
  }

  close(): void {
    this.#answer.destroy()
  }
}
