/** Authorization of the built program: the examples of deploy/roles, the flags, and kubectl. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { findKubectl, Kubectl } from '../../support/kubectl.ts'
import { Tidings } from '../../support/tidings.ts'

const kubectl = await findKubectl()
const examples = join(import.meta.dirname, '../../../deploy/roles')

/** Users by token; the token is also the name unless another is given. */
const TOKENS = `root,root,1,system:masters
olga,olga,2,operators
sam,sam,3,"shop-team"
node,system:node:one,4,system:nodes
bot,system:serviceaccount:shop:shop-controller,5,"system:serviceaccounts,system:serviceaccounts:shop"
prometheus,prometheus,6
oncall,oncall,7,on-call
nobody,nobody,8
updater,updater,9
shipper,shipper,10,recorders
flo,flo,11,fleet
`
const USERS = TOKENS.trim()
  .split('\n')
  .map((line) => line.slice(0, line.indexOf(',')))

interface Answer {
  readonly status: number
  readonly body: string
}

interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: object
}

async function call(
  server: Tidings,
  path: string,
  token: string,
  asked: Call = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body } = asked
  const request = https.request({
    host: '127.0.0.1',
    port: server.port,
    ca: server.ca,
    path,
    method,
    agent: false,
    headers: {
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(headers as Record<string, string>),
    },
  })
  request.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = await once(request, 'response')
  return { status: response.statusCode, body: await text(response) }
}

const events = (namespace: string, name = ''): string =>
  `/apis/events.k8s.io/v1/namespaces/${namespace}/events${name === '' ? '' : `/${name}`}`

function event(namespace: string, name: string): object {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name },
    eventTime: '2026-01-02T03:04:05.678901Z',
    action: 'Test',
    reason: 'Test',
    type: 'Normal',
    reportingController: 'example.com/test',
    reportingInstance: 'test-0',
    regarding: { kind: 'Pod', namespace, name: 'web-0' },
  }
}

/** Makes a request look as if it came from another host, through a proxy on this one. */
const fromAfar = { 'x-forwarded-for': '198.51.100.7' }

describe('authorization', () => {
  let etcd: EtcdCluster
  let folder: string
  let tokenFile: string
  let policy: string
  let server: Tidings

  async function start(...flags: readonly string[]): Promise<Tidings> {
    const started = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${tokenFile}`,
      ...flags,
    ])
    await started.until('/readyz', ({ status }) => status === 200, 10_000)
    return started
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-authorization-'))
    tokenFile = join(folder, 'tokens.csv')
    policy = join(folder, 'policy')
    await writeFile(tokenFile, TOKENS)
    await cp(examples, policy, { recursive: true })
    await writeFile(
      join(policy, 'updater.yaml'),
      `apiVersion: rbac.authorization.k8s.io/v1
kind: List
items:
- kind: Role
  apiVersion: rbac.authorization.k8s.io/v1
  metadata: {name: updater, namespace: shop}
  rules: [{apiGroups: [events.k8s.io], resources: [events], verbs: [update, get], resourceNames: [mine]}, {apiGroups: [events.k8s.io], resources: [events], verbs: [list], resourceNames: [mine]}]
- kind: RoleBinding
  apiVersion: rbac.authorization.k8s.io/v1
  metadata: {name: updater, namespace: shop}
  roleRef: {kind: Role, name: updater}
  subjects: [{kind: User, name: updater}]
`,
    )
    etcd = await startEtcd()
    server = await start(`--rbac-policy-path=${policy}`)
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await etcd?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  /** Users whose request is authorized; it may fail for another reason. */
  async function admitted(path: string, asked: Call = {}): Promise<readonly string[]> {
    const statuses = await Promise.all(
      USERS.map(async (user) => ({ user, ...(await call(server, path, user, asked)) })),
    )
    assert.ok(statuses.every(({ status }) => status !== 401))
    return statuses.filter(({ status }) => status !== 403).map(({ user }) => user)
  }

  test('the example roles allow readers, writers and recorders of events, in their namespaces', async () => {
    const readers = ['root', 'olga', 'oncall', 'flo']
    assert.deepEqual(await admitted(events('other')), readers)
    assert.deepEqual(await admitted('/apis/events.k8s.io/v1/events'), readers)
    const inShop = ['root', 'olga', 'sam', 'oncall', 'flo']
    assert.deepEqual(await admitted(events('shop')), inShop)
    assert.deepEqual(await admitted(events('shop', 'x')), inShop)
    const post = { method: 'POST', body: {} }
    assert.deepEqual(await admitted(events('other'), post), ['root', 'node', 'bot', 'shipper'])
    const writers = ['root', 'sam', 'node', 'bot', 'shipper']
    assert.deepEqual(await admitted(events('shop'), post), writers)
    const patch = { method: 'PATCH', body: {} }
    assert.deepEqual(await admitted(events('shop', 'x'), patch), writers)
    const remove = { method: 'DELETE' }
    assert.deepEqual(await admitted(events('shop', 'x'), remove), ['root', 'sam'])
    assert.deepEqual(await admitted(events('none'), remove), ['root'])
  })

  test('the example roles of clusters allow reads there, and those of all clusters in all at once', async () => {
    const inCluster = (name: string, path: string): string => `/clusters/${name}${path}`
    assert.deepEqual(await admitted(inCluster('prod-eu', events('shop'))), ['root', 'sam', 'flo'])
    assert.deepEqual(await admitted(inCluster('prod-eu', events('other'))), ['root', 'flo'])
    assert.deepEqual(await admitted(inCluster('prod-us', events('shop'))), ['root', 'flo'])
    assert.deepEqual(await admitted(inCluster('*', events('shop'))), ['root', 'flo'])
    const post = { method: 'POST', body: {} }
    assert.deepEqual(await admitted(inCluster('prod-eu', events('shop')), post), ['root'])
    for (const path of ['/version', '/apis', '/openapi/v3']) {
      assert.deepEqual(await admitted(inCluster('prod-eu', path)), USERS)
    }
  })

  test('every authenticated user reads health, a few read single checks and metrics', async () => {
    assert.deepEqual(await admitted('/livez', { headers: fromAfar }), USERS)
    assert.deepEqual(await admitted('/version', { headers: fromAfar }), USERS)
    assert.deepEqual(await admitted('/apis', { headers: fromAfar }), USERS)
    assert.deepEqual(await admitted('/livez/ping', { headers: fromAfar }), [
      'root',
      'prometheus',
      'oncall',
    ])
    assert.deepEqual(await admitted('/livez/ping'), USERS)
    assert.deepEqual(await admitted('/metrics'), ['root', 'prometheus', 'oncall'])
    assert.deepEqual(await admitted('/nope'), ['root'])
  })

  test('a role for one event by its name allows get, list and watch of it, and of nothing else', async () => {
    const status = async (path: string): Promise<number> =>
      (await call(server, path, 'updater')).status
    assert.equal(await status(events('shop', 'mine')), 404)
    assert.equal(await status(events('shop', 'yours')), 403)
    assert.equal(await status(`${events('shop')}?fieldSelector=metadata.name%3Dmine`), 200)
    assert.equal(await status(`${events('shop')}?fieldSelector=metadata.name%3Dyours`), 403)
    assert.equal(await status(`${events('shop')}?fieldSelector=metadata.name!%3Dmine`), 403)
    assert.equal(await status(events('shop')), 403)
  })

  test('a PUT that creates also needs the permission to create', async () => {
    const body = event('shop', 'mine')
    const refused = await call(server, events('shop', 'mine'), 'updater', { method: 'PUT', body })
    assert.equal(refused.status, 403)
    assert.match(refused.body, /cannot create resource/)
    assert.equal((await call(server, events('shop', 'mine'), 'root')).status, 404)
    const made = await call(server, events('shop', 'mine'), 'sam', { method: 'PUT', body })
    assert.equal(made.status, 201)
    const changed = await call(server, events('shop', 'mine'), 'updater', { method: 'PUT', body })
    assert.equal(changed.status, 200)
    await call(server, events('shop', 'mine'), 'root', { method: 'DELETE' })
  })

  test('impersonation is limited to permitted users, with repeated groups, also one with a comma', async () => {
    const list = (headers: Call['headers'], token = 'oncall'): Promise<Answer> =>
      call(server, events('shop'), token, headers === undefined ? {} : { headers })
    const asTeam = { 'impersonate-user': 'shop-bot', 'impersonate-group': ['shop-team'] }
    assert.equal((await list(asTeam)).status, 200)
    assert.equal((await list({ 'impersonate-user': 'shop-bot' })).status, 403)
    const two = { ...asTeam, 'impersonate-group': ['shop-team', 'system:masters'] }
    assert.equal((await list(two)).status, 403)
    const comma = { ...asTeam, 'impersonate-group': ['operators,shop-team'] }
    assert.match((await list(comma, 'root')).body, /User \\"shop-bot\\" cannot list/)
    assert.equal(
      (await list({ ...two, 'impersonate-group': ['shop-team', 'x'] }, 'root')).status,
      200,
    )
    assert.equal((await list({ 'impersonate-group': 'shop-team' })).status, 400)
  })

  test('a changed policy is loaded within seconds; a broken one keeps the old one in use and is logged', async () => {
    const file = join(policy, 'late.yaml')
    const binding = (name: string): string => `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: late, namespace: late}
roleRef: {kind: ClusterRole, name: ${name}}
subjects: [{kind: User, name: nobody}]
`
    const status = async (): Promise<number> =>
      (await call(server, events('late'), 'nobody')).status
    assert.equal(await status(), 403)
    await writeFile(file, binding('view'))
    await eventually('the new binding is effective', async () => (await status()) === 200)
    await writeFile(file, binding('view').replace('kind: User', 'kind: Robot'))
    const problem = await server.logged('RBAC policy not reloaded')
    assert.match(String(problem['err']), /late\.yaml, document 1: subjects\[0\]\.kind/)
    assert.equal(await status(), 200)
    await rm(file)
    await eventually('the binding is removed', async () => (await status()) === 403)
  })

  test('kubectl through a cluster shows its permissions and refusals', {
    skip: kubectl === undefined,
  }, async () => {
    const sam = await Kubectl.as('sam', server, kubectl ?? '')
    const inCluster = (name: string, ...args: readonly string[]) =>
      sam.run(`--server=https://127.0.0.1:${server.port}/clusters/${name}`, ...args)
    const canI = async (name: string): Promise<string> =>
      (await inCluster(name, 'auth', 'can-i', 'list', 'events', '-n', 'shop')).stdout.trim()
    assert.equal(await canI('prod-eu'), 'yes')
    assert.equal(await canI('prod-us'), 'no')
    const { stderr } = await inCluster('prod-us', 'get', 'events', '-n', 'shop')
    assert.equal(
      stderr,
      'Error from server (Forbidden): events is forbidden: User "sam" cannot list resource "events" in API group "" in the namespace "shop" in the cluster "prod-us"\n',
    )
  })

  test('kubectl auth can-i, whoami and --as work', { skip: kubectl === undefined }, async () => {
    const program = kubectl ?? ''
    const sam = await Kubectl.as('sam', server, program)
    const canI = async (who: Kubectl, ...args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await who.run('auth', 'can-i', ...args)
      return stdout.trim() || stderr
    }
    assert.equal(await canI(sam, 'get', 'events.events.k8s.io', '-n', 'shop'), 'yes')
    assert.equal(await canI(sam, 'create', 'events.events.k8s.io', '-n', 'shop'), 'yes')
    assert.equal(await canI(sam, 'get', 'events.events.k8s.io', '-n', 'other'), 'no')
    assert.equal(await canI(sam, 'get', 'events.events.k8s.io', '--all-namespaces'), 'no')
    assert.equal(await canI(sam, 'get', '/metrics'), 'no')
    assert.equal(await canI(sam, 'get', '/livez'), 'yes')
    const list = await canI(sam, '--list', '-n', 'shop')
    assert.match(list, /events\.events\.k8s\.io\s+\[\]\s+\[\]\s+\[.*create.*\]/)
    const { stdout: whoami, stderr } = await sam.run('auth', 'whoami')
    assert.match(whoami, /Username\s+sam/, stderr)
    assert.match(whoami, /Groups\s+\[shop-team system:authenticated\]/)

    const root = await Kubectl.as('root', server, program)
    assert.equal(await canI(root, '*', '*'), 'yes')
    assert.equal(await canI(root, 'get', 'events.events.k8s.io', '--as=nobody'), 'no')
    const asOlga = await root.run(
      'auth',
      'whoami',
      '--as=olga',
      '--as-group=operators',
      '--as-uid=7',
    )
    assert.match(asOlga.stdout, /Username\s+olga/)
    assert.match(asOlga.stdout, /Groups\s+\[operators system:authenticated\]/)
    const asTeam = ['--as=shop-bot', '--as-group=shop-team']
    const oncall = await Kubectl.as('oncall', server, program)
    assert.equal((await oncall.run('get', 'events.events.k8s.io', '-n', 'shop', ...asTeam)).code, 0)
    const refused = await oncall.run('auth', 'can-i', 'get', 'events', '--as=root')
    assert.match(refused.stderr, /User "oncall" cannot impersonate resource "users"/)
  })

  test('paths that are open to all need no credentials, but invalid ones are still rejected', async () => {
    await using open = await start('--authorization-always-allow-paths=/livez,/readyz/*')
    const ask = async (path: string, headers: Record<string, string> = fromAfar): Promise<number> =>
      (await call(open, path, '', { headers })).status
    assert.equal(await ask('/livez'), 200)
    assert.equal(await ask('/readyz/ping'), 200)
    assert.equal(await ask('/readyz'), 401)
    assert.equal(await ask('/livez/ping'), 401)
    assert.equal(await ask('/livez', { ...fromAfar, authorization: 'Bearer wrong' }), 401)
    assert.equal((await call(open, '/livez', 'nobody', { headers: fromAfar })).status, 200)
  })

  test('the on-call role reads why readyz fails, from another host; others see the check, not the reason', async () => {
    await using broken = await Tidings.start([
      '--etcd-servers=http://127.0.0.1:1',
      `--token-auth-file=${tokenFile}`,
      `--rbac-policy-path=${policy}`,
    ])
    const ask = (path: string, token: string): Promise<Answer> =>
      call(broken, path, token, { headers: fromAfar })
    const all = await ask('/readyz', 'oncall')
    assert.equal(all.status, 500)
    const failed = [...all.body.matchAll(/^\[-\](\S+) failed: reason withheld$/gm)].map(
      ([, name = '']) => name,
    )
    assert.ok(failed.includes('datastore'), all.body)
    for (const check of failed) {
      const { status, body } = await ask(`/readyz/${check}`, 'oncall')
      assert.equal(status, 500, body)
      assert.match(body, /^internal server error: .{5,}/)
      assert.equal((await ask(`/readyz/${check}`, 'olga')).status, 403)
    }
    assert.equal((await ask('/metrics', 'oncall')).status, 200)
  })

  test('AlwaysAllow must be configured, and does not admit requests without credentials', async () => {
    await using open = await start('--authorization-mode=AlwaysAllow', '--anonymous-auth')
    assert.equal((await call(open, events('shop'), 'nobody')).status, 200)
    assert.equal((await call(open, events('shop'), '')).status, 401)
    await open.logged('Anonymous access stays off: --authorization-mode contains AlwaysAllow')
    assert.doesNotMatch((await open.ask('/readyz?verbose')).body, /rbac/)
  })

  test('an anonymous user, where allowed, reads health and version and nothing else', async () => {
    await using open = await start('--anonymous-auth')
    const ask = async (path: string): Promise<number> =>
      (await call(open, path, '', { headers: fromAfar })).status
    assert.deepEqual(
      await Promise.all(['/livez', '/version', '/apis', '/livez/ping', events('a')].map(ask)),
      [200, 200, 403, 403, 403],
    )
  })

  test('a webhook that is down denies all but masters, with Retry-After', async () => {
    const config = join(folder, 'webhook.yaml')
    await writeFile(
      config,
      `{kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1/'}}]}`,
    )
    await using open = await start(
      '--authorization-mode=Webhook,RBAC',
      `--authorization-webhook-config-file=${config}`,
      `--rbac-policy-path=${policy}`,
    )
    const refused = await call(open, events('shop'), 'nobody')
    assert.equal(refused.status, 503)
    assert.equal(JSON.parse(refused.body).details.retryAfterSeconds, 1)
    // Requests that another authorizer can decide are still served.
    assert.equal((await call(open, events('shop'), 'root')).status, 200)
    assert.equal((await call(open, events('shop'), 'sam')).status, 200)
    assert.equal((await call(open, '/livez', 'nobody', { headers: fromAfar })).status, 200)
  })

  test('an invalid policy fails the start with file, document and field', async () => {
    const broken = join(folder, 'broken.yaml')
    await writeFile(broken, 'kind: Role\napiVersion: v1\n')
    await assert.rejects(
      start(`--rbac-policy-path=${broken}`),
      /--rbac-policy-path.*broken\.yaml, document 1: apiVersion: must be/,
    )
  })
})
