import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { type Log, type LogFields, silentLog } from '../../lib/log/log.ts'
import { FileTokens, loadTokens, type TokenTable, tokenTable } from './token-file.ts'

const table = (text: string): TokenTable => tokenTable('tokens.csv', Buffer.from(text))

describe('tokenTable', () => {
  test('a token has its user, uid and groups, and the group of authenticated users', () => {
    const tokens = table('abc,ada,7,"ops,dev"\nxyz,bob,\n')
    assert.deepEqual(tokens.userOf('abc'), {
      name: 'ada',
      uid: '7',
      groups: ['ops', 'dev', 'system:authenticated'],
    })
    assert.deepEqual(tokens.userOf('xyz'), {
      name: 'bob',
      uid: '',
      groups: ['system:authenticated'],
    })
    assert.equal(tokens.size, 2)
    assert.deepEqual(tokens.remarks, [])
  })

  test('a token that was used is found again, and one that differs in any character is not', () => {
    const token = 'abcdefghijklmnop'
    const table = tokenTable('tokens.csv', Buffer.from(`${token},ann,1\n`))
    for (let round = 0; round < 3; round++) assert.equal(table.userOf(token)?.name, 'ann')
    for (let at = 0; at < token.length; at++) {
      const other = `${token.slice(0, at)}X${token.slice(at + 1)}`
      assert.equal(table.userOf(other), undefined, other)
    }
    assert.equal(table.userOf(`${token}q`), undefined)
    assert.equal(table.userOf(token)?.name, 'ann')
  })

  test('other tokens, and inherited properties, have no user', () => {
    const tokens = table('abc,ada,7')
    for (const token of [
      '',
      'ab',
      'abcd',
      'ABC',
      '__proto__',
      'constructor',
      'x'.repeat(100_000),
    ]) {
      assert.equal(tokens.userOf(token), undefined)
    }
  })

  test('adds the group of authenticated users once, and ignores empty groups', () => {
    assert.deepEqual(table('a,b,c,"system:authenticated,,g"').userOf('a')?.groups, [
      'g',
      'system:authenticated',
    ])
    assert.deepEqual(table('a,b,c,').userOf('a')?.groups, ['system:authenticated'])
  })

  test('the later of two lines with the same token wins', () => {
    const tokens = table('abc,ada,1\nabc,bob,2')
    assert.equal(tokens.userOf('abc')?.name, 'bob')
    assert.equal(tokens.size, 1)
    assert.deepEqual(
      tokens.remarks.map(({ line }) => line),
      [2],
    )
  })

  test('lines with a token that cannot be sent are skipped and reported', () => {
    const text = `,ada,1\na b,ada,1\n"a\nb",ada,1\nä,ada,1\n${'x'.repeat(8193)},ada,1\nok,ada,1`
    const tokens = table(text)
    assert.equal(tokens.size, 1)
    assert.deepEqual(
      tokens.remarks.map(({ line }) => line),
      [1, 2, 3, 5, 6],
    )
    assert.equal(tokens.userOf('x'.repeat(8193)), undefined)
  })

  test('groups that are not quoted together are reported', () => {
    const tokens = table('abc,ada,1,g1,g2')
    assert.deepEqual(tokens.userOf('abc')?.groups, ['g1', 'system:authenticated'])
    assert.match(tokens.remarks[0]?.text ?? '', /quote the groups/)
  })

  test('a byte order mark is not part of the first token', () => {
    assert.equal(table('\ufeffabc,ada,1').userOf('abc')?.name, 'ada')
  })

  test('a malformed file is refused with path and line, and its content is not quoted', () => {
    for (const [text, line] of [
      ['hidden,ada,1\nhidden,ada\n', 2],
      ['\nhidden', 2],
      ['hidden,,1', 1],
      ['hidden,ada,1\n"hidden,ada,1', 2],
      ['hid"den,ada,1', 1],
    ] as const) {
      assert.throws(
        () => table(text),
        (error) =>
          error instanceof Error &&
          error.message.startsWith(`tokens.csv, line ${line}: `) &&
          !JSON.stringify([error.message, error.stack, error.cause]).includes('hid'),
        JSON.stringify(text),
      )
    }
    assert.throws(() => tokenTable('tokens.csv', Buffer.from([0xff])), /tokens\.csv is not UTF-8/)
  })

  test('any file is accepted or refused with path and line, and its tokens are never quoted', () => {
    const unit = fc.constantFrom('Z', ',', '"', '\n', ' ')
    fc.assert(
      fc.property(fc.string({ unit }), (text) => {
        try {
          assert.ok(!JSON.stringify(table(text).remarks).includes('Z'))
        } catch (error) {
          assert.match(String(error), /^Error: tokens\.csv, line \d+: [^Z]*$/)
        }
      }),
    )
  })
})

describe('loadTokens', () => {
  test('returns the current table itself when the content of the file is unchanged', async () => {
    await using folder = await tempFolder()
    const path = join(folder.path, 'tokens.csv')
    await writeFile(path, 'abc,ada,1')
    const first = await loadTokens(path)
    await writeFile(path, 'abc,ada,1')
    assert.equal(await loadTokens(path, first), first)
    await writeFile(path, 'abc,bob,2')
    assert.equal((await loadTokens(path, first)).userOf('abc')?.name, 'bob')
  })

  test('refuses a directory, a missing file and a file that is too large', async () => {
    await using folder = await tempFolder()
    await assert.rejects(loadTokens(folder.path), /is not a file/)
    await assert.rejects(loadTokens(join(folder.path, 'none')), /ENOENT/)
    const path = join(folder.path, 'large.csv')
    await writeFile(path, Buffer.alloc(1024 * 1024 + 1, 0x0a))
    await assert.rejects(loadTokens(path), /is larger than 1048576 bytes/)
  })
})

describe('FileTokens', () => {
  let path: string

  before(async () => {
    path = join(await mkdtemp(join(tmpdir(), 'tidings-tokens-')), 'tokens.csv')
  })
  after(() => rm(join(path, '..'), { recursive: true }))

  test('uses a changed file, unless it is unusable', async (context) => {
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
    const fixed = nextLine()
    // The last poll may not have finished yet.
    await new Promise(setImmediate)
    context.mock.timers.tick(1000)
    assert.equal(await fixed, 'Token file reloaded')
    assert.deepEqual(names(), [undefined, 'bob'])
    tokens.stop()
    assert.doesNotMatch(JSON.stringify(lines), /(old|new)-token/)
  })

  test('logs at most twenty problems one by one', async () => {
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

  test('refuses to open an unusable file', async () => {
    await writeFile(path, 'token,ada')
    await assert.rejects(FileTokens.open(path, silentLog), /tokens\.csv, line 1: 2 columns/)
  })
})

async function tempFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'tidings-tokens-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) }
}

/** A log that records its lines; `nextLine` waits for another one. */
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
