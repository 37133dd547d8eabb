import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { readSnippets, type Snippet, SnippetServer } from '../support/snippets.ts'

const root = join(import.meta.dirname, '../..')
const kubectl = join(root, '.cache/kubectl-1.36/usr/bin/kubectl')
const SNIPPET_MS_MAX = 30_000
const run = promisify(execFile)

const snippets = readSnippets(join(root, 'docs/clients.md'))

test('docs/clients.md: its snippets are in languages that are run', () => {
  const languages = new Set(snippets.map(({ language }) => language))
  assert.deepEqual([...languages].sort(), ['go', 'sh', 'ts'])
})

for (const snippet of snippets.filter(({ language }) => language === 'sh')) {
  const isForKubectl = snippet.code.includes('kubectl ')
  test(`docs/clients.md, line ${snippet.line}: the commands print what it says`, {
    skip: isForKubectl && !existsSync(kubectl) ? 'there is no kubectl 1.36 here' : false,
  }, async () => {
    await using server = await SnippetServer.start()
    const path = [dirname(kubectl), '/usr/bin', '/bin'].join(delimiter)
    const { stdout } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', snippet.code], {
      env: { ...server.env, PATH: path },
      timeout: SNIPPET_MS_MAX,
    })
    assert.equal(stdout, snippet.output)
  })
}

for (const snippet of snippets.filter(({ language }) => language === 'ts')) {
  test(`docs/clients.md, line ${snippet.line}: the program prints what it says`, async () => {
    await using server = await SnippetServer.start()
    assert.equal(await runProgram(snippet, server), snippet.output)
  })
}

async function runProgram({ code }: Snippet, { env }: SnippetServer): Promise<string> {
  // Inside the project, where the packages it imports are found.
  const folder = await mkdtemp(join(root, '.cache/snippet-'))
  try {
    await writeFile(join(folder, 'snippet.ts'), code)
    const { stdout } = await run(process.execPath, [join(folder, 'snippet.ts')], {
      env: { ...env },
      timeout: SNIPPET_MS_MAX,
    })
    return stdout
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
