import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DevCredentials } from './credentials.ts'

test('dev credentials: have one token for server and client, which the next start in the folder reuses', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-credentials-'))
  try {
    const credentials = await DevCredentials.create(folder)
    assert.equal(credentials.lastPort, undefined)
    await credentials.writeKubeconfig('https://localhost:6555', 'certs/a b.crt')
    const { token } = credentials
    assert.match(token, /^[0-9a-f]{32}$/)
    assert.equal(await readFile(credentials.tokenFile, 'utf8'), `${token},dev,dev,system:masters\n`)
    const config = JSON.parse(await readFile(credentials.kubeconfig, 'utf8'))
    assert.deepEqual(config.users, [{ name: 'dev', user: { token } }])
    assert.deepEqual(config.clusters[0].cluster, {
      server: 'https://localhost:6555',
      'certificate-authority': join(process.cwd(), 'certs/a b.crt'),
    })
    for (const path of [credentials.tokenFile, credentials.kubeconfig]) {
      assert.equal((await stat(path)).mode & 0o777, 0o600)
    }
    const again = await DevCredentials.create(folder)
    assert.deepEqual([again.token, again.lastPort], [token, 6555])
    await writeFile(credentials.tokenFile, 'short,dev,dev,system:masters\n')
    await writeFile(credentials.kubeconfig, '{}')
    const other = await DevCredentials.create(folder)
    assert.notEqual(other.token, token)
    assert.match(other.token, /^[0-9a-f]{32}$/)
    assert.equal(other.lastPort, undefined)
  } finally {
    await rm(folder, { recursive: true })
  }
})
