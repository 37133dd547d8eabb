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
import { type Answer, Client } from './client.ts'
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
  playAll(SUITES_OF_OTHER_GROUP, { group: OTHER_GROUP })
})

/** Both at once on one server, with equal namespaces and names. */
describe('under /clusters/a and /clusters/b', { concurrency: true }, () => {
  playAll(SUITES, { clusters: ['a', 'b'] })
})

/** A test for each suite, all at once, against one server. */
function playAll(
  suites: readonly string[],
  {
    group,
    clusters = [undefined],
  }: { readonly group?: string; readonly clusters?: readonly (string | undefined)[] } = {},
): void {
  const stack = new AsyncDisposableStack()
  let playerOf: ((cluster?: string) => Player) | undefined
  before(async () => {
    playerOf = await start(stack, group)
  })
  after(() => stack.disposeAsync())

  const cases = suites.flatMap((suite) => clusters.map((cluster) => ({ suite, cluster })))
  for (const { suite, cluster } of cases) {
    test(cluster === undefined ? suite : `${suite} in ${cluster}`, async () => {
      assert.ok(playerOf)
      const results = await play(loadRecording(suite, group), playerOf(cluster))
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

/** A refusal names the cluster of its path, on purpose; Kubernetes has nothing to name there. */
async function withoutCluster(sent: Promise<Answer>, cluster: string): Promise<Answer> {
  const answer = await sent
  const text = answer.body.toString('latin1')
  const said = ` in the cluster \\"${cluster}\\"`
  const plain = ` in the cluster "${cluster}"`
  if (!text.includes(said) && !text.includes(plain)) return answer
  const body = Buffer.from(text.replaceAll(said, '').replaceAll(plain, ''), 'latin1')
  return { ...answer, body }
}

/** Returns the player for a cluster, or for paths without one. */
async function start(
  stack: AsyncDisposableStack,
  group?: string,
): Promise<(cluster?: string) => Player> {
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
  return (cluster) => {
    const prefix = cluster === undefined ? '' : `/clusters/${cluster}`
    const base = `https://127.0.0.1:${server.port}${prefix}`
    const client = stack.use(new Client(base, { ca: server.ca }))
    const player = { token: 'admin-token', run: 'run' }
    if (cluster === undefined) return { ...player, client }
    return { ...player, client: { send: (sent) => withoutCluster(client.send(sent), cluster) } }
  }
}
