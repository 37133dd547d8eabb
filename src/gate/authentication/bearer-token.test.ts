import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { unauthorized, unavailable } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import { type Log, type LogFields, silentLog } from '../../lib/log/log.ts'
import { bearerTokens, FileTokens, type TokenAuthenticator } from './bearer-token.ts'

describe('tokens of clusters', () => {
  const requestWith = (token: string): Request => ({
    method: 'GET',
    path: '/',
    query: new URLSearchParams(),
    headers: { authorization: `Bearer ${token}` },
    peer: { address: '192.0.2.1', isLoopback: false, clientCertificate: () => undefined },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
  })
  const asked: string[] = []
  const origins: TokenAuthenticator = {
    userOf: async (token, from, cluster) => {
      asked.push(`${token} ${from} ${cluster}`)
      return token.startsWith('theirs') ? { name: token, groups: [], origin: cluster } : undefined
    },
  }
  const failing = (error: Error): TokenAuthenticator => ({
    userOf: () => {
      throw error
    },
  })
  const own: TokenAuthenticator = {
    userOf: (token) => (token === 'ours' ? { name: 'ada', groups: [] } : undefined),
  }
  const late: TokenAuthenticator = { userOf: async (token, from) => own.userOf(token, from, '') }
  const authenticate = async (kinds: TokenAuthenticator[], token: string): Promise<unknown> => {
    asked.length = 0
    const { authenticate: run } = bearerTokens(kinds, origins)
    return (await run(requestWith(token), { cluster: 'a' }))?.origin
  }

  test('a token that is known here is not sent to a cluster', async () => {
    for (const kind of [own, late]) {
      assert.equal(await authenticate([kind], 'ours'), undefined)
      assert.deepEqual(asked, [])
    }
  })

  test('a token that is unknown or invalid here is sent to the requested cluster', async () => {
    for (const kinds of [[], [own], [late], [failing(unauthorized())]]) {
      assert.equal(await authenticate(kinds, 'theirs'), 'a')
      assert.deepEqual(asked, ['theirs 192.0.2.1 a'])
    }
  })

  test('a token that cannot be checked here is not sent to a cluster', async () => {
    await assert.rejects(authenticate([failing(unavailable('down', 1))], 'theirs'), { code: 503 })
    assert.deepEqual(asked, [])
  })

  test('a token that is unknown everywhere gets the refusal of this server', async () => {
    const refusal = unauthorized()
    await assert.rejects(authenticate([failing(refusal)], 'nobody'), refusal)
    assert.equal(asked.length, 1)
  })

  test('a token is checked again for the same cluster', async () => {
    const again = bearerTokens([own], origins).reauthenticator?.(requestWith('theirs-1'), {
      cluster: 'b',
    })
    assert.equal((await again?.())?.origin, 'b')
  })
})

describe('FileTokens', () => {
  let path: string

  before(async () => {
    path = join(await mkdtemp(join(tmpdir(), 'tidings-tokens-')), 'tokens.csv')
  })
  after(() => rm(join(path, '..'), { recursive: true }))

  test('a changed file is used, and one that cannot be used changes nothing', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const { log, lines, nextLine } = recording()
    await writeFile(path, 'old-token,ada,1\n')
    const tokens = await FileTokens.open(path, log)
    const names = (): unknown[] =>
      ['old-token', 'new-token'].map((token) => tokens.userOf(token)?.name)
    assert.deepEqual(names(), ['ada', undefined])

    await writeFile(path, 'new-token,bob,2\nnew-token')
    const broken = nextLine()
    context.mock.timers.tick(1000)
    assert.equal(await broken, 'Token file not reloaded')
    assert.deepEqual(names(), ['ada', undefined])

    await writeFile(path, 'new-token,bob,2\n')
    const mended = nextLine()
    // The last poll may not have finished yet.
    await new Promise(setImmediate)
    context.mock.timers.tick(1000)
    assert.equal(await mended, 'Token file reloaded')
    assert.deepEqual(names(), [undefined, 'bob'])
    tokens.stop()
    assert.doesNotMatch(JSON.stringify(lines), /(old|new)-token/)
  })

  test('at most twenty problems are logged one by one', async () => {
    const { log, lines } = recording()
    await writeFile(path, ',nobody,0\n'.repeat(25))
    const tokens = await FileTokens.open(path, log)
    tokens.stop()
    assert.equal(lines.length, 21)
    assert.deepEqual(lines[0], {
      msg: 'Problem in a line of the token file',
      file: path,
      line: 1,
      reason: 'skipped: no token',
    })
    assert.equal(lines[20]?.['count'], 5)
  })

  test('a file that cannot be used is not opened', async () => {
    await writeFile(path, 'token,ada')
    await assert.rejects(FileTokens.open(path, silentLog), /tokens\.csv, line 1: 2 columns/)
  })
})

/** A log that keeps its lines; `nextLine` waits for another one. */
function recording(): { log: Log; lines: LogFields[]; nextLine: () => Promise<string> } {
  const lines: LogFields[] = []
  let onLine: (msg: string) => void = () => {}
  const record = (msg: string, fields: LogFields = {}): void => {
    lines.push({ msg, ...fields, ...('err' in fields ? { err: String(fields['err']) } : {}) })
    onLine(msg)
  }
  const nextLine = (): Promise<string> =>
    new Promise((resolve) => {
      onLine = resolve
    })
  return { log: { ...silentLog, info: record, warn: record }, lines, nextLine }
}
