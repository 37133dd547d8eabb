/** The pictures that the README opens with are of the page as it is, as far as that is cheap to say. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { takePictures } from '../../pictures/overview-picture.ts'
import { sizeOf, textOf } from '../../pictures/png-chunks.ts'

const root = join(import.meta.dirname, '../../..')
const BYTES_MAX = 150_000

test('pictures: those of the README show the views and filters that there are', async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  for (const { name, png } of await takePictures()) {
    assert.ok(readme.includes(`docs/images/${name}`), `the README does not show ${name}`)
    const kept = readFileSync(join(root, 'docs/images', name))
    assert.ok(kept.length <= BYTES_MAX, `${name} has ${kept.length} bytes`)
    assert.deepEqual(sizeOf(kept), sizeOf(png))
    // Colours and distances may differ until the next release, which takes new pictures.
    assert.equal(textOf(kept), textOf(png), `${name} is out of date: npm run screenshot`)
    assert.notEqual(textOf(kept), '')
  }
})
