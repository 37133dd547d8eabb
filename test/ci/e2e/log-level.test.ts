import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { type Answer, Tidings } from '../../support/tidings.ts'

const PATH = '/debug/flags/v'

describe('the log level of a running server', () => {
  test('is set by those who may put it, and counts at once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-log-level-'))
    const tokenFile = join(folder, 'tokens.csv')
    const tokens = 'admin-token,admin,1,system:masters\nuser-token,user,2\n'
    await writeFile(tokenFile, tokens, { mode: 0o600 })
    await using etcd = await startEtcd()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${tokenFile}`,
      '--authorization-mode=RBAC',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
    const put = (token: string, body: string): Promise<Answer> => {
      const headers = { authorization: `Bearer ${token}` }
      return server.ask(PATH, { method: 'PUT', headers, body })
    }
    const requestLines = (): number => server.log.filter((line) => Number(line['v']) > 0).length

    assert.equal((await put('user-token', '4')).status, 403)
    assert.equal((await server.ask(PATH, { method: 'PUT', body: '4' })).status, 401)
    for (const body of ['', '11', '-1', 'debug', '4'.repeat(100)]) {
      const { status } = await put('admin-token', body)
      assert.ok(status === 400 || status === 413, `${status} for ${body}`)
    }
    const admin = { headers: { authorization: 'Bearer admin-token' } }
    assert.equal((await server.ask(PATH, admin)).status, 405)
    await server.ask('/version', admin)
    assert.equal(requestLines(), 0)

    const answer = await put('admin-token', '4\n')
    assert.equal(answer.status, 200)
    assert.equal(answer.body, 'successfully set klog.logging.verbosity to 4')
    assert.equal((await server.logged('Log level set'))['level'], 4)
    await server.ask('/version', admin)
    const deadline = performance.now() + 5000
    while (requestLines() === 0 && performance.now() < deadline) await server.ask('/version', admin)
    assert.ok(requestLines() > 0)

    assert.equal((await put('admin-token', '0')).status, 200)
    const before = requestLines()
    await server.ask('/version', admin)
    await server.ask('/version', admin)
    // The line of the request that was in progress when the level was set may still come.
    assert.ok(requestLines() <= before + 1)
    await rm(folder, { recursive: true })
  })
})
