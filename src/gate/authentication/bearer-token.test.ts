import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Log, type LogFields, silentLog } from '../../lib/log/log.ts'
import { FileTokens } from './bearer-token.ts'

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
