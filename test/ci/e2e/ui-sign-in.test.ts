/** The link of `tidings dev`, and its one-time code. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type DevServer, startDev } from '../../support/dev-server.ts'
import { Folder } from '../../support/gate.ts'
import { type Client, openClient, PROTOCOLS } from '../../support/http-client.ts'
import type { Answer } from '../../support/raw-http1.ts'
import { Tidings } from '../../support/tidings.ts'

const POLICY =
  'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse, omitStages: []}]\n'
const JSON_TYPE = { 'content-type': 'application/json' }

function signIn(
  client: Client,
  code: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return client.request({
    method: 'POST',
    path: '/ui/sign-in',
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify({ code }),
  })
}

function reasonOf({ body }: Answer): unknown {
  return JSON.parse(String(body)).reason
}

describe('the link of tidings dev', { timeout: 60_000 }, () => {
  let folder: Folder
  let dev: DevServer
  let auditLog: string
  let port: number
  let code: string
  before(async () => {
    folder = await Folder.create()
    const policy = await folder.write('policy.yaml', POLICY)
    auditLog = join(folder.path, 'audit.log')
    dev = await startDev([
      `--audit-policy-file=${policy}`,
      `--audit-log-path=${auditLog}`,
      '--audit-log-unauthenticated-qps=0',
      '--v=10',
    ])
    const link = dev.lines.map((line) => /^ {2}(https:\S+\/ui\/#code=\S+)$/.exec(line)?.[1])
    const url = new URL(link.find((found) => found !== undefined) ?? '')
    assert.equal(url.hostname, 'localhost')
    port = Number(url.port)
    code = url.hash.slice('#code='.length)
  })
  after(async () => {
    if (dev.child.exitCode === null) {
      dev.child.kill('SIGTERM')
      await once(dev.child, 'exit')
    }
    await folder[Symbol.asyncDispose]()
  })

  test('other codes, other bodies and other origins get nothing', async () => {
    for (const protocol of PROTOCOLS) {
      // A connection is closed when its request was refused before its body was read.
      const ask = async (sent: string, headers: Record<string, string> = {}): Promise<Answer> => {
        using client = await openClient(protocol, port)
        return await signIn(client, sent, headers)
      }
      const other = await ask(code, { 'sec-fetch-site': 'cross-site' })
      assert.deepEqual([other.status, reasonOf(other)], [403, 'Forbidden'])
      const untyped = await ask(code, { 'content-type': 'text/plain' })
      assert.equal(untyped.status, 415)
      const long = await ask(`${code}${'x'.repeat(1024)}`)
      assert.deepEqual([long.status, reasonOf(long)], [413, 'RequestEntityTooLarge'])
      assert.match(String(long.body), /limit is 1024/)
      const wrong = await ask(`${code}x`)
      assert.deepEqual([wrong.status, reasonOf(wrong)], [401, 'Unauthorized'])
      assert.ok(!String(wrong.body).includes(code))
    }
  })

  test('the code gets a token that works, once, and neither is logged', async () => {
    using client = await openClient('h2', port)
    const answer = await signIn(client, code, { 'sec-fetch-site': 'same-origin' })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { token } = JSON.parse(String(answer.body))
    const headers = { authorization: `Bearer ${token}` }
    assert.equal((await client.request({ path: '/api/v1/events', headers })).status, 200)
    const again = await signIn(client, code)
    assert.equal(again.status, 401)
    const audit = await readFile(auditLog, 'utf8')
    const ours = audit.split('\n').filter((line) => line.includes('"/ui/sign-in"'))
    assert.ok(ours.length > 3)
    for (const line of ours) assert.doesNotMatch(line, /requestObject|"responseObject"/)
    for (const secret of [code, token]) {
      assert.ok(!audit.includes(secret), 'the audit log has a secret')
      assert.ok(!dev.stderr().includes(secret), 'the log has a secret')
    }
  })
})

test('no other server exchanges codes', async () => {
  await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
  for (const protocol of PROTOCOLS) {
    using client = await openClient(protocol, server.port)
    const answer = await signIn(client, '00000000000000000000000000000000')
    assert.deepEqual([answer.status, reasonOf(answer)], [404, 'NotFound'])
  }
})
