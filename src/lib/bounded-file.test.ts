import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { modeText, readBounded } from './bounded-file.ts'

describe('readBounded', () => {
  let folder: string
  let file: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-bounded-'))
    file = join(folder, 'f')
    await writeFile(file, 'text')
  })
  after(() => rm(folder, { recursive: true }))

  test('a file is read, whoever else may read it or is in its group', async () => {
    for (const mode of [0o400, 0o600, 0o640, 0o644, 0o664]) {
      await chmod(file, mode)
      assert.equal(String(await readBounded(file, 4)), 'text')
    }
  })

  test('one that every user of the host can write is refused, with the remedy', async () => {
    await chmod(file, 0o646)
    await assert.rejects(readBounded(file, 4), {
      message: `${file} can be written by every user of this host (mode 0646): chmod o-w it`,
    })
    await chmod(file, 0o600)
  })

  test('one that is too long, and what is no file, is refused', async () => {
    await assert.rejects(readBounded(file, 3), /is larger than 3 bytes/)
    await assert.rejects(readBounded(folder, 3), /is not a file/)
  })

  test('a mode is shown as chmod takes it', () => {
    assert.equal(modeText(0o100600), '0600')
    assert.equal(modeText(0o41777), '1777')
  })
})
