import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { readSnippets, SnippetServer } from '../../support/snippets.ts'
import { buildGo, whyNot } from './program.ts'

const SNIPPET_MS_MAX = 30_000
const page = join(import.meta.dirname, '../../../docs/how-to/clients-in-programs.md')
const snippets = readSnippets(page).filter(({ language }) => language === 'go')

test('the Go programs of docs/how-to/clients-in-programs.md, run one after the other, print what the page says', {
  skip: whyNot,
}, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-go-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await using server = await SnippetServer.start()
  for (const { code, output, line } of snippets) {
    await writeFile(join(folder, 'main.go'), code)
    await buildGo(folder, join(folder, 'program'))
    const { stdout } = await promisify(execFile)(join(folder, 'program'), [], {
      env: { ...server.env },
      timeout: SNIPPET_MS_MAX,
    })
    assert.equal(stdout, output, `line ${line}`)
  }
})
