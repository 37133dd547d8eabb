import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { Tidings } from '../../support/tidings.ts'

const NO_ETCD = '--etcd-servers=http://127.0.0.1:1'
const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const ALL = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n'

// biome-ignore lint/suspicious/noExplicitAny: a line may have any content.
type Line = any

let root: string
let folder: string
let policyFile: string
let logFile: string

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'tidings-audit-'))
})
after(() => rm(root, { recursive: true }))
beforeEach(async () => {
  folder = await mkdtemp(join(root, 'a-'))
  policyFile = join(folder, 'policy.yaml')
  logFile = join(folder, 'log/audit.log')
})

async function started(policy: string, ...flags: readonly string[]): Promise<Tidings> {
  await writeFile(policyFile, policy)
  const tokens = join(folder, 'tokens.csv')
  await writeFile(
    tokens,
    'ada-token,ada,1,"ops"\nrobot-token,system:serviceaccount:deploy:robot,2\nnode-token,system:node:n1,3,"system:nodes"\n',
  )
  const path = flags.some((flag) => flag.startsWith('--audit-log-path'))
    ? []
    : [`--audit-log-path=${logFile}`]
  return Tidings.start([
    `--audit-policy-file=${policyFile}`,
    `--token-auth-file=${tokens}`,
    '--authorization-mode=AlwaysAllow',
    ...path,
    ...flags,
  ])
}

async function linesIn(path: string): Promise<Line[]> {
  const text = await readFile(path, 'utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

const as = (user: string, more: object = {}) => ({
  headers: { authorization: `Bearer ${user}-token`, 'content-type': 'application/json', ...more },
})

function event(name: string): string {
  return JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: name.endsWith('-') ? { generateName: name } : { name },
    eventTime: '2026-11-15T04:02:47.000000Z',
    reportingController: 'example.com/c',
    reportingInstance: 'c-1',
    action: 'Test',
    reason: 'Tested',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'shop', name: 'p' },
    note: `the note of ${name}`,
  })
}

/** The value of a metric, summed over its labels. */
async function metric(server: Tidings, name: string): Promise<number> {
  const { body } = await server.ask('/metrics')
  const values = [...body.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))]
  return values.reduce((sum, [, value]) => sum + Number(value), 0)
}

/** Sends requests over a few connections, each with its own Audit-Id, and reports each response. */
async function load(
  server: Tidings,
  count: number,
  onAnswer: (id: string) => void,
  { path = '/livez/ping', headers = {} }: { path?: string; headers?: Record<string, string> } = {},
): Promise<void> {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 16, ca: server.ca })
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) {
      const id = `load-${next++}`
      const request = https.request({
        host: '127.0.0.1',
        port: server.port,
        path,
        agent,
        headers: { 'audit-id': id, 'user-agent': 'x'.repeat(800), ...headers },
      })
      request.end()
      const [response] = await once(request, 'response')
      response.resume()
      await once(response, 'end')
      onAnswer(id)
    }
  }
  try {
    await Promise.all(Array.from({ length: 16 }, worker))
  } finally {
    agent.destroy()
  }
}

describe('audit log', () => {
  test('the policy in the documentation does what the page says', async () => {
    const document = await readFile(
      join(import.meta.dirname, '../../../docs/reference/audit.md'),
      'utf8',
    )
    const policy = /```yaml\n([\s\S]*?)```/.exec(document)?.[1] ?? ''
    await using etcd = await startEtcd()
    await using server = await started(policy, `--etcd-servers=${etcd.endpoints[0]}`)
    await server.until('/readyz', ({ status }) => status === 200, 15_000)

    const made = await server.ask(EVENTS, { method: 'POST', ...as('ada'), body: event('by-ada-') })
    assert.equal(made.status, 201, made.body)
    await server.ask(EVENTS, { method: 'POST', ...as('robot'), body: event('by-robot') })
    await server.ask(EVENTS, { method: 'POST', ...as('node'), body: event('by-node') })
    await server.ask(`${EVENTS}/by-node`, { method: 'DELETE', ...as('ada') })
    await server.ask(`${EVENTS}/missing`, as('ada'))
    const rejected = await server.ask(EVENTS, { headers: { authorization: 'Bearer unknown' } })

    const lines = await linesIn(logFile)
    const seen = lines.map(({ level, verb, user, responseStatus, objectRef }) =>
      [level, verb, user.username, responseStatus.code, objectRef.name].join(' '),
    )
    const name = JSON.parse(made.body).metadata.name
    assert.deepEqual(seen, [
      `Metadata create ada 201 ${name}`,
      'Request create system:serviceaccount:deploy:robot 201 by-robot',
      'RequestResponse delete ada 200 by-node',
      'Metadata get ada 404 missing',
      'Metadata list  401 ',
    ])
    const [byAda, byRobot, removed, missing, refused] = lines
    assert.equal(byAda.auditID, made.headers['audit-id'])
    assert.equal(byAda.requestObject, undefined)
    assert.deepEqual(byRobot.requestObject, JSON.parse(event('by-robot')))
    assert.equal(byRobot.responseObject, undefined)
    assert.equal(
      removed.responseObject.metadata?.name ?? removed.responseObject.details?.name,
      'by-node',
    )
    assert.equal(missing.responseStatus.reason, 'NotFound')
    assert.equal(refused.stage, 'ResponseStarted')
    assert.equal(refused.auditID, rejected.headers['audit-id'])
    assert.equal(refused.responseStatus.message, 'Authentication failed, attempted: bearer')
    assert.equal(await metric(server, 'apiserver_audit_event_total'), 5)
    assert.equal(await metric(server, 'apiserver_audit_error_total'), 0)
  })

  test('a watch is logged when it is received, when it begins, and when it ends', async () => {
    await using etcd = await startEtcd()
    await using server = await started(ALL, `--etcd-servers=${etcd.endpoints[0]}`)
    await server.until('/readyz', ({ status }) => status === 200, 15_000)
    const headers = { ...as('ada').headers, 'audit-id': 'the-watch' }
    await server.ask(`${EVENTS}?watch=1&timeoutSeconds=1`, { headers, protocol: 'h2' })
    const ofWatch = async (): Promise<Line[]> =>
      (await linesIn(logFile)).filter(({ auditID }) => auditID === 'the-watch')
    await eventually('three lines', async () => (await ofWatch()).length === 3)
    const lines = await ofWatch()
    assert.deepEqual(
      lines.map(({ stage, verb, responseStatus }) => [stage, verb, responseStatus?.code]),
      [
        ['RequestReceived', 'watch', undefined],
        ['ResponseStarted', 'watch', 200],
        ['ResponseComplete', 'watch', 200],
      ],
    )
    const times = lines.map(({ stageTimestamp }) => stageTimestamp)
    assert.deepEqual(times, times.toSorted())
    assert.match(times[0], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  })

  test('a log without received stages still has callers, queries and user agents', async () => {
    await using etcd = await startEtcd()
    await using server = await started(
      `${ALL}omitStages: [RequestReceived]\n`,
      `--etcd-servers=${etcd.endpoints[0]}`,
    )
    await server.until('/readyz', ({ status }) => status === 200, 15_000)
    await server.ask(EVENTS, { method: 'POST', ...as('ada'), body: event('one') })
    const asked = {
      get: `${EVENTS}/one?pretty=true`,
      list: `${EVENTS}?limit=7`,
      watch: `${EVENTS}?watch=1&timeoutSeconds=1`,
    }
    const linesOf = async (verb: string): Promise<Line[]> =>
      (await linesIn(logFile)).filter((line) => line.verb === verb && line.user.username === 'ada')
    const stages = {
      get: ['ResponseComplete'],
      list: ['ResponseComplete'],
      watch: ['ResponseStarted', 'ResponseComplete'],
    }
    for (const verb of ['get', 'list', 'watch'] as const) {
      for (const protocol of ['h1', 'h2'] as const) {
        await server.ask(asked[verb], {
          protocol,
          ...as('ada', { 'x-forwarded-for': '198.51.100.9', 'user-agent': 'the-agent/1' }),
        })
      }
      const wanted = [...stages[verb], ...stages[verb]]
      await eventually(verb, async () => (await linesOf(verb)).length === wanted.length)
      const lines = await linesOf(verb)
      assert.deepEqual(
        lines.map(({ stage, sourceIPs, requestURI, userAgent }) => ({
          stage,
          sourceIPs,
          requestURI,
          userAgent,
        })),
        wanted.map((stage) => ({
          stage,
          sourceIPs: ['198.51.100.9', '127.0.0.1'],
          requestURI: asked[verb],
          userAgent: 'the-agent/1',
        })),
      )
    }
  })

  test('a new policy is loaded within seconds, and a broken one keeps the old one in use', async () => {
    await using server = await started(ALL, NO_ETCD)
    const countOf = async (): Promise<number> => {
      await server.ask('/livez/ping')
      return (await linesIn(logFile)).length
    }
    const replace = async (text: string): Promise<void> => {
      await writeFile(`${policyFile}.new`, text)
      await rename(`${policyFile}.new`, policyFile)
    }
    assert.equal(await countOf(), 2)
    await replace(ALL.replace('level', 'levle'))
    const problem = await server.logged('Audit policy not reloaded')
    assert.match(String(problem['err']), /policy\.yaml: rules\[0\]\.level: must be one of/)
    assert.equal(await countOf(), 4)
    await replace(ALL.replace('Metadata', 'None'))
    await server.logged('Audit policy reloaded')
    assert.equal(await countOf(), 4)
  })

  test('an invalid audit configuration fails the start', async () => {
    await assert.rejects(started('rules: []', NO_ETCD), /--audit-policy-file.*must be a Policy/)
    await assert.rejects(
      started(ALL, NO_ETCD, `--audit-log-path=${folder}`),
      /--audit-log-path.*EISDIR/,
    )
  })

  test('rotation under load neither loses nor mixes up lines', async () => {
    await using server = await started(
      ALL,
      NO_ETCD,
      '--audit-log-maxsize=1',
      '--audit-log-compress=false',
    )
    const count = 2000
    await load(server, count, () => {})
    const names = (await readdir(join(folder, 'log'))).sort()
    assert.ok(names.length >= 4, `${names}`)
    // The names of rotated files sort by time, and the current file comes after them.
    const lines: Line[] = []
    for (const name of names) {
      const path = join(folder, 'log', name)
      assert.ok((await stat(path)).size <= 1024 * 1024)
      lines.push(...(await linesIn(path)))
    }
    const stages = Map.groupBy(lines, ({ auditID }) => auditID)
    for (let index = 0; index < count; index++) {
      const found = stages.get(`load-${index}`)?.map(({ stage }) => stage)
      assert.deepEqual(found, ['RequestReceived', 'ResponseComplete'], `load-${index}`)
    }
  })

  test('a kill leaves at most half a line, and every response that was sent is in the log', async () => {
    const answered: string[] = []
    {
      await using server = await started(ALL, NO_ETCD)
      const cut = load(server, 100_000, (id) => {
        answered.push(id)
        if (answered.length === 500) server.kill('SIGKILL')
      })
      await assert.rejects(cut)
      await server.ended
    }
    const parts = (await readFile(logFile, 'utf8')).split('\n')
    // The last part is the text after the last newline.
    const whole = parts.slice(0, -1).map((text): Line => JSON.parse(text))
    const complete = new Set(
      whole.filter(({ stage }) => stage === 'ResponseComplete').map(({ auditID }) => auditID),
    )
    assert.ok(answered.length >= 500)
    assert.deepEqual(
      answered.filter((id) => !complete.has(id)),
      [],
    )
    await writeFile(logFile, '{"kind":"Ev', { flag: 'a' })
    await using server = await started(ALL, NO_ETCD)
    await server.ask('/livez/ping')
    const [halfLine, ...later] = (await readFile(logFile, 'utf8'))
      .split('\n')
      .slice(parts.length - 1, -1)
    assert.ok(halfLine?.endsWith('{"kind":"Ev'))
    assert.deepEqual(
      later.map((text) => JSON.parse(text).stage),
      ['RequestReceived', 'ResponseComplete'],
    )
  })

  test('a full disk does not stop the server, and is visible in the log and the metrics', async () => {
    await using server = await started(ALL, NO_ETCD, '--audit-log-path=/dev/full')
    for (let times = 0; times < 20; times++) {
      assert.equal((await server.ask('/livez/ping')).status, 200)
    }
    const line = await server.logged('Audit log cannot be written')
    assert.match(String(line['err']), /ENOSPC/)
    assert.ok((await metric(server, 'apiserver_audit_error_total')) > 0)
    assert.ok((await metric(server, 'tidings_audit_waiting_bytes')) > 1000)
    assert.equal(await metric(server, 'tidings_audit_lost_total'), 0)
    server.kill('SIGTERM')
    assert.equal((await server.ended).code, 0)
  })

  test('a disk that has space again gets every line that was queued', async (context) => {
    const disk = join(folder, 'disk')
    execFileSync('mkdir', [disk])
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk], { stdio: 'pipe' })
    } catch {
      context.skip('file systems cannot be mounted here')
      return
    }
    try {
      await writeFile(join(disk, 'filler'), Buffer.alloc(48 * 1024))
      const path = join(disk, 'audit.log')
      await using server = await started(ALL, NO_ETCD, `--audit-log-path=${path}`)
      await load(server, 15, () => {})
      await server.logged('Audit log cannot be written')
      assert.equal((await server.ask('/livez/ping')).status, 200)
      await rm(join(disk, 'filler'))
      const again = await server.logged('Audit log is written again')
      assert.equal(again['lost'], 0)
      const stages = Map.groupBy(await linesIn(path), ({ auditID }) => auditID)
      for (let index = 0; index < 15; index++) {
        assert.equal(stages.get(`load-${index}`)?.length, 2, `load-${index}`)
      }
    } finally {
      execFileSync('umount', ['-l', disk])
    }
  })

  test('a flood of unauthenticated requests writes little, and all other requests are logged', async () => {
    const count = 300
    const startedAt = performance.now()
    {
      await using server = await started(ALL, NO_ETCD, '--audit-log-unauthenticated-qps=1')
      const flood = load(server, count, () => {}, {
        path: `${EVENTS}?x=${'%22'.repeat(2000)}`,
        headers: { authorization: 'Bearer unknown' },
      })
      for (let index = 0; index < 30; index++) {
        await server.ask('/version', as('ada', { 'audit-id': `ada-${index}` }))
      }
      await flood
      assert.ok((await metric(server, 'tidings_audit_omitted_total')) > 0)
      server.kill('SIGTERM')
      assert.equal((await server.ended).code, 0)
    }
    const lines = await linesIn(logFile)
    const unauthenticated = lines.filter(({ user }) => user.username === undefined)
    const summaries = unauthenticated.filter(({ annotations }) => annotations !== undefined)
    const summed = summaries.map(({ annotations }) => Number(annotations['audit.tidings/omitted']))
    const inFull = unauthenticated.length - summaries.length
    assert.equal(inFull + summed.reduce((sum, each) => sum + each, 0), count)
    const seconds = (performance.now() - startedAt) / 1000
    assert.ok(inFull >= 50 && inFull <= 50 + seconds, `${inFull} in ${seconds} s`)
    assert.ok(unauthenticated.every((line) => JSON.stringify(line).length <= 2048))
    const { userAgent, requestURI } = unauthenticated[0]
    assert.ok(userAgent.endsWith('...TRUNCATED') && requestURI.endsWith('...TRUNCATED'))
    const ids = new Set(lines.map(({ auditID }) => auditID))
    for (let index = 0; index < 30; index++) assert.ok(ids.has(`ada-${index}`), `ada-${index}`)
  })

  test('no token and no control character reaches the audit log through any header', async () => {
    const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'
    await using server = await started(ALL, NO_ETCD)
    const headers = {
      'impersonate-user': `bob-${jwt}`,
      'impersonate-uid': jwt,
      'impersonate-group': jwt,
      'impersonate-extra-scope': jwt,
      'audit-id': jwt,
      'user-agent': `a\u009b31m ${jwt}`,
      'x-forwarded-for': jwt,
    }
    const path = `/apis/x%C2%9B/v1/namespaces/%E2%80%AE${jwt}/y?z=${jwt}`
    const protocols = ['h1', 'h2'] as const
    for (const protocol of protocols) {
      for (const more of [{}, { 'impersonate-user': 'x\u009bx' }]) {
        await server.ask(path, { protocol, ...as('ada', { ...headers, ...more }) })
        await server.ask(path, { protocol, headers: { ...headers, ...more } })
      }
    }
    const text = await readFile(logFile, 'utf8')
    assert.equal(text.trimEnd().split('\n').length, 12)
    assert.match(text, /"impersonatedUser":\{"username":"bob-\[redacted\]"/)
    assert.doesNotMatch(text, /eyJ|c2lnbmF0dXJl/)
    assert.match(text.replaceAll('\n', ''), /^[\x20-\x7e]+$/)
    assert.match(text, /\\u009b31m/)
  })
})
