/** Runs the script of docs/how-to/feed-log-pipelines.md, interrupts it, and lets it resume. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { blocksOf } from '../../../tools/markdown.ts'
import { pageText } from '../../../tools/pages.ts'
import { eventually } from '../../support/eventually.ts'
import { SnippetServer } from '../../support/snippets.ts'
import { cannotFollow, kubectlBinary } from './follower.ts'

const WRITTEN_MS_MAX = 20_000

describe('the script that writes events to a file', { skip: cannotFollow }, () => {
  test('goes on where it was, and begins again when the history is gone', async () => {
    await using server = await SnippetServer.start()
    // The stored events come by name: the last line of the file has not the highest version.
    await create(server, 'b', 'a')
    await until(server, ['a', 'b'])
    await create(server, 'c')
    await until(server, ['a', 'b', 'c'])
    await create(server, 'd')
    await server.forget(await newestVersion(server))
    await until(server, ['a', 'b', 'c', 'a', 'b', 'c', 'd'])
    await create(server, 'e')
    await until(server, ['a', 'b', 'c', 'a', 'b', 'c', 'd', 'e'])
  })
})

/** Runs the script until the file has these events and the version is noted, and ends it. */
async function until(server: SnippetServer, names: readonly string[]): Promise<void> {
  const { env } = server
  const cwd = env['HOME'] ?? ''
  const path = `${dirname(kubectlBinary)}:/usr/bin:/bin`
  const script = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', scriptOf()], {
    cwd,
    env: { ...env, PATH: path },
    detached: true,
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => script.once('exit', resolve))
  try {
    const written = async () => (await inFile(cwd)).length >= names.length && (await isNoted(cwd))
    await eventually(`it has written ${names.join()}`, written, WRITTEN_MS_MAX)
    assert.equal(script.exitCode, null, 'it has ended by itself')
    assert.deepEqual(await inFile(cwd), names)
  } finally {
    // The page uses its own kubectl.
    if (script.pid !== undefined) process.kill(-script.pid)
    await ended
  }
}

function scriptOf(): string {
  const blocks = blocksOf(pageText('docs/how-to/feed-log-pipelines.md'))
  return blocks.find(({ text }) => text.includes('events.version'))?.text ?? assert.fail()
}

async function inFile(folder: string): Promise<readonly string[]> {
  const text = await readFile(join(folder, 'events.ndjson'), 'utf8').catch(() => '')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).object.metadata.name)
}

async function isNoted(folder: string): Promise<boolean> {
  return (await readFile(join(folder, 'events.version'), 'utf8').catch(() => '')) !== ''
}

async function create(server: SnippetServer, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const event = { apiVersion: 'v1', kind: 'Event', metadata: { name, namespace: 'default' } }
    const body = JSON.stringify({ ...event, involvedObject: { namespace: 'default' } })
    await kubectl(server, `create -f - <<< '${body}'`)
  }
}

async function newestVersion(server: SnippetServer): Promise<string> {
  return JSON.parse(await kubectl(server, 'get --raw /api/v1/events')).metadata.resourceVersion
}

async function kubectl(server: SnippetServer, command: string): Promise<string> {
  const args = ['-c', `${kubectlBinary} ${command}`]
  const { stdout } = await promisify(execFile)('bash', args, { env: server.env })
  return stdout
}
