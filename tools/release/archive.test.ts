import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { packFiles, packFolder } from './archive.ts'

const work = mkdtempSync(join(tmpdir(), 'tidings-archive-test-'))
after(() => rmSync(work, { recursive: true }))

test('archive: what tar cannot pack makes no file', () => {
  const file = join(work, 'none.tar.gz')
  assert.throws(() => packFolder(join(work, 'no-such-folder'), file))
  assert.equal(existsSync(file), false)
})

test('archive: two of the same files are the same', () => {
  const folder = join(work, 'some')
  mkdirSync(folder)
  writeFileSync(join(folder, 'text'), 'text')
  for (const pack of [packFolder, packFiles]) {
    const [first, second] = [join(work, 'first'), join(work, 'second')]
    pack(folder, first)
    pack(folder, second)
    assert.deepEqual(readFileSync(first), readFileSync(second))
  }
})
