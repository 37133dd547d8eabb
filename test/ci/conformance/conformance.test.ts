/**
 * The recordings of a Kubernetes API server, played against the built program. One suite by hand:
 * node --test --test-name-pattern=list test/ci/conformance/conformance.test.ts
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'
import { Client } from './client.ts'
import { type Player, play } from './play.ts'
import { loadRecording, SUITES } from './recording.ts'
import { describeResult } from './report.ts'

const TOKENS = 'admin-token,admin,1,system:masters\nnobody-token,nobody,2\n'
const OTHER_GROUP = 'events.example.dev'
const SUITES_OF_OTHER_GROUP = [
  'create-valid',
  'get',
  'list',
  'update',
  'patch',
  'delete',
  'deletecollection',
  'watch',
  'discovery',
]

describe('as events.k8s.io', { concurrency: true }, () => {
  playAll(SUITES)
})

describe(`as ${OTHER_GROUP}`, { concurrency: true }, () => {
  playAll(SUITES_OF_OTHER_GROUP, OTHER_GROUP)
})

/** A test for each suite, all at once, against one server. */
function playAll(suites: readonly string[], group?: string): void {
  const stack = new AsyncDisposableStack()
  let player: Player | undefined
  before(async () => {
    player = await start(stack, group)
  })
  after(() => stack.disposeAsync())

  for (const suite of suites) {
    test(suite, async () => {
      assert.ok(player)
      const results = await play(loadRecording(suite, group), player)
      const failed = results.filter(({ wrong }) => wrong.length > 0)
      assert.ok(
        failed.length === 0,
        `${failed.length} of ${results.length} steps differ\n${failed
          .map((result) => describeResult(suite, result))
          .join('\n')}`,
      )
    })
  }
}

async function start(stack: AsyncDisposableStack, group?: string): Promise<Player> {
  const etcd = stack.use(await startEtcd())
  const folder = await mkdtemp(join(tmpdir(), 'tidings-tokens-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const tokenFile = join(folder, 'tokens.csv')
  await writeFile(tokenFile, TOKENS)
  const server = stack.use(
    await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--token-auth-file=${tokenFile}`,
      ...(group === undefined ? [] : [`--events-group=${group}`]),
    ]),
  )
  await server.until('/readyz', ({ status }) => status === 200, 10_000)
  const client = stack.use(new Client(`https://127.0.0.1:${server.port}`, { ca: server.ca }))
  return { client, token: 'admin-token', run: 'run' }
}
