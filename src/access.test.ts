import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openAccess } from './access.ts'
import { type Log, silentLog } from './lib/log.ts'
import { serverCommand } from './options/commands.ts'
import { parseFlags } from './options/parse.ts'

const NOBODY =
  'Nobody can be authenticated: all requests get 401, but for health from this host and open paths'
const EVERYTHING = 'Everybody who is authenticated may do everything'
const NO_ANONYMOUS = 'Anonymous access stays off: --authorization-mode has AlwaysAllow'

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
    const told: string[] = []
    const log: Log = { ...silentLog, warn: (msg) => told.push(msg) }
    const access = await openAccess(parsed.options, log)
    access.stop()
    return told
  }

  test('none, when somebody can come in and not everybody may do everything', async () => {
    assert.deepEqual(await warnings(tokens), [])
    assert.deepEqual(await warnings('--anonymous-auth'), [])
    assert.deepEqual(await warnings(tokens, '--anonymous-auth'), [])
  })

  test('of a server that knows nobody', async () => {
    assert.deepEqual(await warnings(), [NOBODY])
  })

  test('of AlwaysAllow, which also keeps strangers out whatever was asked for', async () => {
    const all = '--authorization-mode=AlwaysAllow'
    assert.deepEqual(await warnings(tokens, all), [EVERYTHING])
    assert.deepEqual(await warnings(tokens, '--authorization-mode=RBAC,AlwaysAllow'), [EVERYTHING])
    assert.deepEqual(await warnings(tokens, all, '--anonymous-auth'), [EVERYTHING, NO_ANONYMOUS])
    assert.deepEqual(await warnings(all, '--anonymous-auth'), [EVERYTHING, NO_ANONYMOUS, NOBODY])
  })
})
