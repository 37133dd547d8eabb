import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { areFiles, modeText, pemBytesMax, readBounded, readPem } from './bounded-file.ts'

describe('readBounded', () => {
  let folder: string
  let file: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-bounded-'))
    file = join(folder, 'f')
    await writeFile(file, 'text')
  })
  after(() => rm(folder, { recursive: true }))

  test('reads a file that only its owner and group can write', async () => {
    for (const mode of [0o400, 0o600, 0o640, 0o644, 0o664]) {
      await chmod(file, mode)
      assert.equal(String(await readBounded(file, 4)), 'text')
    }
  })

  test('rejects a file that every user of the host can write, with the remedy', async () => {
    await chmod(file, 0o646)
    await assert.rejects(readBounded(file, 4), {
      message: `${file} can be written by every user of this host (mode 0646): chmod o-w it`,
    })
    await chmod(file, 0o600)
  })

  test('rejects a file that is too long, and a folder', async () => {
    await assert.rejects(readBounded(file, 3), /is larger than 3 bytes/)
    await assert.rejects(readBounded(folder, 3), /is not a file/)
  })

  test('does not read a file that is longer than its stat size beyond the limit', async () => {
    assert.equal((await stat('/proc/self/maps')).size, 0)
    await assert.rejects(readBounded('/proc/self/maps', 10), /is larger than 10 bytes/)
  })

  test('rejects a pipe immediately, even without a writer', async () => {
    const pipe = join(folder, 'refused')
    execFileSync('mkfifo', ['-m', '600', pipe])
    await assert.rejects(readBounded(pipe, 10), /is not a file/)
  })

  test('modeText prints a mode in the notation of chmod', () => {
    assert.equal(modeText(0o100600), '0600')
    assert.equal(modeText(0o41777), '1777')
  })
})

describe('readPem', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-pem-'))
  })
  after(() => rm(folder, { recursive: true }))

  async function throughPipe(content: string): Promise<Buffer> {
    const pipe = join(folder, `${content.length}`)
    execFileSync('mkfifo', ['-m', '600', pipe])
    // When the content is too long, the reader closes the pipe before all is written.
    const written = writeFile(pipe, content).catch((error) => assert.equal(error.code, 'EPIPE'))
    try {
      return await readPem(pipe)
    } finally {
      await written
    }
  }

  test('areFiles is false for a pipe', async () => {
    const [file, pipe] = [join(folder, 'file'), join(folder, 'pipe')]
    await writeFile(file, 'pem')
    execFileSync('mkfifo', ['-m', '600', pipe])
    assert.equal(await areFiles([file]), true)
    assert.equal(await areFiles([file, pipe]), false)
    await assert.rejects(areFiles([join(folder, 'nowhere')]), { code: 'ENOENT' })
  })

  test('reads a pipe to its end, in several pieces', async () => {
    assert.equal(String(await throughPipe('pem')), 'pem')
    const long = 'pem\n'.repeat(60_000)
    assert.equal(String(await throughPipe(long)), long)
  })

  test('rejects a file or a pipe that is too long for certificates', async () => {
    const file = join(folder, 'file')
    await writeFile(file, Buffer.alloc(pemBytesMax + 1), { mode: 0o600 })
    await assert.rejects(readPem(file), /file is larger than 1048576 bytes/)
    await assert.rejects(throughPipe('x'.repeat(2 * pemBytesMax)), /is larger than 1048576 bytes/)
  })
})
