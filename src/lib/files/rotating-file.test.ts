import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import {
  appendFile,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { AppendError } from '../log/line-queue.ts'
import { backupName, tidyBackups } from './file-backups.ts'
import { RotatingFile, type RotatingFileOptions } from './rotating-file.ts'

const root = mkdtempSync(join(tmpdir(), 'tidings-rotation-'))
let folder: string
let path: string

after(() => rm(root, { recursive: true }))

async function makeFolder(): Promise<void> {
  folder = await mkdtemp(join(root, 'f-'))
  path = join(folder, 'audit.log')
}

function opened(change: Partial<RotatingFileOptions> = {}): Promise<RotatingFile> {
  return RotatingFile.open({
    path,
    bytesMax: 100,
    backupsMax: 0,
    backupAgeMsMax: 0,
    compress: false,
    onRotationFailed: (error) => assert.fail(String(error)),
    ...change,
  })
}

const bytes = (text: string): Buffer => Buffer.from(text)
const backups = async (): Promise<string[]> =>
  (await readdir(folder)).filter((name) => name !== 'audit.log').sort()

describe('rotating file', () => {
  beforeEach(makeFolder)

  test('appends lines to an existing file that only its owner can read', async () => {
    const file = await opened()
    await file.append(bytes('one\n'))
    await file.close()
    const again = await opened()
    await again.append(bytes('two\n'))
    await again.close()
    assert.equal(await readFile(path, 'utf8'), 'one\ntwo\n')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
  })

  test('creates missing folders', async () => {
    path = join(folder, 'a/b/audit.log')
    await (await opened()).close()
    assert.equal((await stat(path)).size, 0)
    assert.equal((await stat(join(folder, 'a'))).mode & 0o777, 0o700)
  })

  test('renames a full file with its time, and no file exceeds the maximum length', async () => {
    const file = await opened()
    const lines = Array.from({ length: 30 }, (_, index) => `${String(index).padStart(29, '0')}\n`)
    for (const line of lines) await file.append(bytes(line))
    await file.close()
    const names = await backups()
    assert.equal(names.length, 9)
    let all = ''
    for (const name of [...names, 'audit.log']) {
      const text = await readFile(join(folder, name), 'utf8')
      assert.ok(text.length <= 100)
      all += text
    }
    assert.equal(all, lines.join(''))
    for (const name of names) {
      assert.match(name, /^audit-\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}\.\d{3}\.log$/)
      assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600)
    }
  })

  test('writes a line that is longer than the maximum to a separate file', async () => {
    const file = await opened()
    await file.append(bytes(`${'x'.repeat(300)}\n`))
    await file.append(bytes('y\n'))
    await file.close()
    assert.equal(await readFile(path, 'utf8'), 'y\n')
    assert.equal((await backups()).length, 1)
  })

  test('does not join a partial line left by a crash with the next line', async () => {
    await writeFile(path, '{"whole":1}\n{"half')
    const file = await opened()
    await file.append(bytes('{"next":1}\n'))
    await file.close()
    assert.equal(await readFile(path, 'utf8'), '{"whole":1}\n{"half\n{"next":1}\n')
  })

  test('creates a file again that another program moved away', async (context) => {
    const file = await opened()
    await file.append(bytes('one\n'))
    await rename(path, join(folder, 'moved'))
    const now = performance.now()
    context.mock.method(performance, 'now', () => now + 2000)
    await file.append(bytes('two\n'))
    await file.close()
    assert.equal(await readFile(path, 'utf8'), 'two\n')
    assert.equal(await readFile(join(folder, 'moved'), 'utf8'), 'one\n')
  })

  test('rotates the file behind a symbolic link, not the link', async () => {
    await writeFile(path, '')
    const linked = join(folder, 'link.log')
    await symlink(path, linked)
    const file = await opened({ path: linked })
    await file.append(bytes(`${'x'.repeat(99)}\n`))
    await file.append(bytes('y\n'))
    await file.close()
    assert.equal(await readFile(linked, 'utf8'), 'y\n')
    assert.equal(await readFile(path, 'utf8'), 'y\n')
  })

  test('rejects with an AppendError on a full disk, and never renames a device', async () => {
    const file = await opened({ path: '/dev/full', bytesMax: 1 })
    for (let times = 0; times < 2; times++) {
      await assert.rejects(file.append(bytes('line\n')), (error) => {
        assert.ok(error instanceof AppendError)
        assert.equal(error.written, 0)
        assert.match(String(error.cause), /ENOSPC/)
        return true
      })
    }
    await file.close()
    assert.equal((await stat('/dev/full')).isCharacterDevice(), true)
  })

  test('rejects when the file cannot be opened', async () => {
    await assert.rejects(opened({ path: folder }), /EISDIR/)
    await writeFile(path, '')
    await assert.rejects(opened({ path: join(path, 'below.log') }), /ENOTDIR|EEXIST/)
  })

  test('writes the rest of a partial line to the same file', async () => {
    const file = await opened()
    await file.append(bytes(`${'x'.repeat(96)}\n`))
    // After a partial write, the queue retries with the rest.
    await file.append(bytes('12'))
    await file.append(bytes('3456\n'))
    await file.append(bytes('y\n'))
    await file.close()
    const [aside = ''] = await backups()
    assert.equal(await readFile(join(folder, aside), 'utf8'), `${'x'.repeat(96)}\n123456\n`)
    assert.equal(await readFile(path, 'utf8'), 'y\n')
  })
})

describe('backups', () => {
  beforeEach(makeFolder)

  const DAY_MS = 86_400_000
  const limits = { backupsMax: 0, backupAgeMsMax: 0, compress: false }

  async function createBackups(...ages: readonly number[]): Promise<void> {
    for (const days of ages) {
      await appendFile(backupName(path, new Date(Date.now() - days * DAY_MS)), `${days}\n`)
    }
  }

  test('are removed when there are too many or they are too old, and no other files are', async () => {
    const others = [
      'audit.log',
      'audit-.log',
      'audit-notes.log',
      'audit-2026.log',
      'other-2026-11-15T04-02-47.123.log',
    ]
    for (const name of others) await writeFile(join(folder, name), '')
    await createBackups(1, 2, 3, 10, 20)
    await tidyBackups(path, limits)
    assert.equal((await readdir(folder)).length, others.length + 5)
    await tidyBackups(path, { ...limits, backupAgeMsMax: 5 * DAY_MS })
    assert.equal((await readdir(folder)).length, others.length + 3)
    await tidyBackups(path, { ...limits, backupsMax: 1 })
    const left = (await readdir(folder)).filter((name) => !others.includes(name))
    assert.equal(left.length, 1)
    assert.equal(await readFile(join(folder, left[0] ?? ''), 'utf8'), '1\n')
  })

  test('have the same content and still count when compressed', async () => {
    await createBackups(1, 2)
    await tidyBackups(path, { ...limits, compress: true })
    const names = (await readdir(folder)).sort()
    assert.ok(names.every((name) => name.endsWith('.log.gz')) && names.length === 2)
    const first = join(folder, names[0] ?? '')
    assert.equal(gunzipSync(await readFile(first)).toString(), '2\n')
    assert.equal((await stat(first)).mode & 0o777, 0o600)
    await tidyBackups(path, { ...limits, compress: true, backupsMax: 1 })
    assert.equal((await readdir(folder)).length, 1)
  })
})
