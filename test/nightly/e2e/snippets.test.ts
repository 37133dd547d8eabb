import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { readSnippets, SnippetServer } from '../../support/snippets.ts'

const root = join(import.meta.dirname, '../../..')
const kubectl = join(root, '.cache/kubectl-1.36/usr/bin/kubectl')
const SNIPPET_MS_MAX = 30_000
const INSTALL_MS_MAX = 90_000
const run = promisify(execFile)

const page = readFileSync(join(root, 'docs/how-to/clients-in-programs.md'), 'utf8')
const commands = readSnippets(join(root, 'docs/how-to/clients.md'))
const programs = readSnippets(join(root, 'docs/how-to/clients-in-programs.md'))

test('the snippets of docs/how-to/clients*.md are in languages that are run', () => {
  const languages = new Set([...commands, ...programs].map(({ language }) => language))
  assert.deepEqual([...languages].sort(), ['go', 'sh', 'ts'])
})

for (const snippet of commands.filter(({ language }) => language === 'sh')) {
  const isForKubectl = snippet.code.includes('kubectl ')
  test(`the commands at line ${snippet.line} of docs/how-to/clients.md print what the page says`, {
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

describe('programs of docs/how-to/clients-in-programs.md, in a folder made as the page says', () => {
  const setUp = [...page.matchAll(/`((?:npm|node) [^`]+\.mts|npm (?:init|install) [^`]+)`/g)].map(
    ([, command = '']) => command,
  )
  const [program = ''] = setUp.filter((command) => command.startsWith('node '))
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-snippet-'))
    for (const command of setUp.filter((each) => each.startsWith('npm '))) {
      await run('bash', ['--norc', '-euo', 'pipefail', '-c', command], {
        cwd: folder,
        // Packages that `npm ci` has fetched need not be fetched again.
        // biome-ignore lint/style/noProcessEnv: npm is the machine's own.
        env: { ...process.env, npm_config_prefer_offline: 'true' },
        timeout: INSTALL_MS_MAX,
      })
    }
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('the page says how to create the folder and run a program', () => {
    assert.deepEqual(setUp, [
      'npm init -y',
      'npm install @kubernetes/client-node@2',
      'node snippet.mts',
    ])
  })

  for (const { line, code, output } of programs.filter(({ language }) => language === 'ts')) {
    test(`the program at line ${line} prints what the page says`, async () => {
      await using server = await SnippetServer.start()
      await writeFile(join(folder, 'snippet.mts'), code)
      const { stdout } = await run('bash', ['--norc', '-euo', 'pipefail', '-c', program], {
        cwd: folder,
        env: {
          ...server.env,
          PATH: [dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter),
        },
        timeout: SNIPPET_MS_MAX,
      })
      assert.equal(stdout, output)
    })
  }
})
