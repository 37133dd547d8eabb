import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Log, type LogFields, silentLog } from '../../lib/log.ts'
import { FileTokens } from './bearer-token.ts'

describe('FileTokens', () => {
  let path: string

  before(async () => {
    path = join(await mkdtemp(join(tmpdir(), 'tidings-tokens-')), 'tokens.csv')
  })
  after(() => rm(join(path, '..'), { recursive: true }))

  test('knows the tokens of the file as it is now, and keeps them when it breaks', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const { log, lines, next } = recording()
    await writeFile(path, 'old-token,ada,1\n')
    const tokens = await FileTokens.open(path, log)
    const names = (): unknown[] =>
      ['old-token', 'new-token'].map((token) => tokens.userOf(token)?.name)
    assert.deepEqual(names(), ['ada', undefined])

    await writeFile(path, 'new-token,bob,2\nnew-token')
    const broken = next()
    context.mock.timers.tick(1000)
    assert.equal(await broken, 'Token file not reloaded')
    assert.deepEqual(names(), ['ada', undefined])

    await writeFile(path, 'new-token,bob,2\n')
    const mended = next()
    // The look that found it broken may still be ending.
    await new Promise(setImmediate)
    context.mock.timers.tick(1000)
    assert.equal(await mended, 'Token file reloaded')
    assert.deepEqual(names(), [undefined, 'bob'])
    tokens.stop()
    assert.doesNotMatch(JSON.stringify(lines), /(old|new)-token/)
  })

  test('tells of lines that are left out, but not of thousands', async () => {
    const { log, lines } = recording()
    await writeFile(path, ',nobody,0\n'.repeat(25))
    const tokens = await FileTokens.open(path, log)
    tokens.stop()
    assert.equal(lines.length, 21)
    assert.deepEqual(lines[0], {
      msg: 'Line of the token file not used as it stands',
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

/** A log that keeps its lines; `next` waits for another one. */
function recording(): { log: Log; lines: LogFields[]; next: () => Promise<string> } {
  const lines: LogFields[] = []
  let heard: (msg: string) => void = () => {}
  const note = (msg: string, fields: LogFields = {}): void => {
    lines.push({ msg, ...fields, ...('err' in fields ? { err: String(fields['err']) } : {}) })
    heard(msg)
  }
  const next = (): Promise<string> =>
    new Promise((resolve) => {
      heard = resolve
    })
  return { log: { ...silentLog, info: note, warn: note }, lines, next }
}
