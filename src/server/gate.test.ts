import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Log, silentLog } from '../lib/log/log.ts'
import { serverCommand } from '../options/commands.ts'
import { parseFlags } from '../options/parse.ts'
import { openGate } from './gate.ts'

const NO_AUTHENTICATION =
  'No authentication is configured: requests get 401, except health, version and metrics from this host'
const EVERYTHING = 'Every authenticated user is allowed everything'
const NO_ANONYMOUS = 'Anonymous access stays off: --authorization-mode contains AlwaysAllow'

describe('warnings at start', () => {
  let folder: string
  let tokens: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-access-'))
    tokens = `--token-auth-file=${join(folder, 'tokens.csv')}`
    await writeFile(join(folder, 'tokens.csv'), 'secret,ada,1\n')
  })
  after(() => rm(folder, { recursive: true }))

  async function warnings(...flags: readonly string[]): Promise<string[]> {
    const parsed = parseFlags(serverCommand, ['--etcd-servers=http://127.0.0.1:1', ...flags])
    assert.equal(parsed.kind, 'run')
    if (parsed.kind !== 'run') return []
    const messages: string[] = []
    const log: Log = { ...silentLog, warn: (msg) => messages.push(msg) }
    const access = await openGate(parsed.options, log)
    access.stop()
    return messages
  }

  test('a server with authentication, or with anonymous users, under RBAC logs none', async () => {
    assert.deepEqual(await warnings(tokens), [])
    assert.deepEqual(await warnings('--anonymous-auth'), [])
    assert.deepEqual(await warnings(tokens, '--anonymous-auth'), [])
  })

  test('a server without authentication logs one', async () => {
    assert.deepEqual(await warnings(), [NO_AUTHENTICATION])
  })

  test('AlwaysAllow logs one, and disables anonymous access whatever the flag says', async () => {
    const all = '--authorization-mode=AlwaysAllow'
    assert.deepEqual(await warnings(tokens, all), [EVERYTHING])
    assert.deepEqual(await warnings(tokens, '--authorization-mode=RBAC,AlwaysAllow'), [EVERYTHING])
    assert.deepEqual(await warnings(tokens, all, '--anonymous-auth'), [EVERYTHING, NO_ANONYMOUS])
    assert.deepEqual(await warnings(all, '--anonymous-auth'), [
      EVERYTHING,
      NO_ANONYMOUS,
      NO_AUTHENTICATION,
    ])
  })
})
