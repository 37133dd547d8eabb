import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DevAccess } from './access.ts'

test('DevAccess: server and client get the same token, in files of their owner alone', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-access-'))
  try {
    const access = await DevAccess.create(folder)
    await access.writeKubeconfig('https://localhost:1', 'certs/a b.crt')
    const { token } = access
    assert.match(token, /^[0-9a-f]{32}$/)
    assert.equal(await readFile(access.tokenFile, 'utf8'), `${token},dev,dev,system:masters\n`)
    const config = JSON.parse(await readFile(access.kubeconfig, 'utf8'))
    assert.deepEqual(config.users, [{ name: 'dev', user: { token } }])
    assert.deepEqual(config.clusters[0].cluster, {
      server: 'https://localhost:1',
      'certificate-authority': join(process.cwd(), 'certs/a b.crt'),
    })
    for (const path of [access.tokenFile, access.kubeconfig]) {
      assert.equal((await stat(path)).mode & 0o777, 0o600)
    }
    assert.notEqual((await DevAccess.create(folder)).token, token)
  } finally {
    await rm(folder, { recursive: true })
  }
})
