/** Every command in the docs is run by a test, or is listed with the reason why it is not. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { anchorsOf, blocksOf, indentedBlocksOf } from '../../../tools/markdown.ts'
import { pages, pageText, root } from '../../../tools/pages.ts'
import { NOT_RUN, RUN_BY } from './commands.ts'

/** Other names for the same language, which would hide commands from the tests. */
const OTHER_NAMES = /^(bash|shell|console|zsh)\b/

const sections = new Set(pages.flatMap(sectionsWithCommands))
const listed = [...Object.keys(RUN_BY), ...Object.keys(NOT_RUN)]

test('documented commands: each is run by a test, or listed with a reason', () => {
  const unknown = [...sections].filter((section) => {
    const [page = ''] = section.split('#')
    return !listed.includes(section) && !listed.includes(page)
  })
  assert.deepEqual(unknown, [], 'add them to test/ci/docs/commands.ts')
})

test('documented commands: the lists name only pages and sections with commands, each once', () => {
  const stale = listed.filter(
    (entry) =>
      ![...sections].some((section) => section === entry || section.startsWith(`${entry}#`)),
  )
  assert.deepEqual(stale, [])
  assert.equal(new Set(listed).size, listed.length)
})

for (const [entry, file] of Object.entries(RUN_BY)) {
  test(`documented commands: ${file} exists and reads ${entry}`, () => {
    assert.ok(existsSync(join(root, file)), `there is no ${file}`)
    const [page = ''] = entry.split('#')
    const [, folder = '', name = ''] = /^(?:docs\/)?(?:(.*)\/)?(.+)$/.exec(page) ?? []
    const text = readFileSync(join(root, file), 'utf8')
    assert.ok(
      text.includes(name) && text.toLowerCase().includes(folder),
      `it does not name ${page}`,
    )
  })
}

test('documented commands: blocks of commands are called sh', () => {
  const others = pages.flatMap((page) =>
    blocksOf(pageText(page))
      .filter(({ language }) => OTHER_NAMES.test(language))
      .map(({ line }) => `${page}:${line}`),
  )
  assert.deepEqual(others, [])
})

test('documented commands: every block is fenced at the start of a line', () => {
  const page =
    'Type:\n\n    one\n    two\n\n- In a list:\n\n  ```sh\n  three\n  ```\n\n```sh\n\n    four\n```\n'
  assert.deepEqual(indentedBlocksOf(page), [3, 8, 10])
  const indented = pages.flatMap((page) =>
    indentedBlocksOf(pageText(page)).map((line) => `${page}:${line}`),
  )
  assert.deepEqual(indented, [], 'other tests do not see the commands in it')
})

/** Returns `page#anchor` of the heading above each block. */
function sectionsWithCommands(page: string): readonly string[] {
  const text = pageText(page)
  return blocksOf(text)
    .filter(({ language }) => /^sh\b/.test(language))
    .map(({ line }) => {
      const above = text.split('\n').slice(0, line).join('\n')
      return `${page}#${anchorsOf(above).at(-1) ?? ''}`
    })
}
