import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DevCredentials } from './credentials.ts'

test('dev credentials: have one token for server and client, in files that only the owner can read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-credentials-'))
  try {
    const credentials = await DevCredentials.create(folder)
    await credentials.writeKubeconfig('https://localhost:1', 'certs/a b.crt')
    const { token } = credentials
    assert.match(token, /^[0-9a-f]{32}$/)
    assert.equal(await readFile(credentials.tokenFile, 'utf8'), `${token},dev,dev,system:masters\n`)
    const config = JSON.parse(await readFile(credentials.kubeconfig, 'utf8'))
    assert.deepEqual(config.users, [{ name: 'dev', user: { token } }])
    assert.deepEqual(config.clusters[0].cluster, {
      server: 'https://localhost:1',
      'certificate-authority': join(process.cwd(), 'certs/a b.crt'),
    })
    for (const path of [credentials.tokenFile, credentials.kubeconfig]) {
      assert.equal((await stat(path)).mode & 0o777, 0o600)
    }
    assert.notEqual((await DevCredentials.create(folder)).token, token)
  } finally {
    await rm(folder, { recursive: true })
  }
})
