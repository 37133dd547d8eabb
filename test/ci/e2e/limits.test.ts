import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { LimitedServer, WRITE } from '../../support/limited-server.ts'
import { runToEnd } from '../../support/tidings.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'

describe('limits', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-limits-'))
  })
  after(() => rm(folder, { recursive: true }))

  const file = (): string => join(folder, 'limits.yaml')

  /** Replaced atomically by a rename. */
  async function writeLimit(type: string, burst: number): Promise<void> {
    const text = `apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits: [{type: ${type}, qps: 1, burst: ${burst}}]
`
    await writeFile(`${file()}.new`, text)
    await rename(`${file()}.new`, file())
  }

  test('events are limited to the rate of the file, also after it changed', async () => {
    await writeLimit('SourceAndObject', 2)
    await using limited = await LimitedServer.start(
      ['ada', 'bob'],
      [`--event-rate-limit-config-file=${file()}`],
    )
    const write = async (name: string, options: { user?: string; query?: string } = {}) => {
      const body = (WRITE.body ?? '').replaceAll('load-NUMBER', name)
      const path = `${EVENTS}${options.query ?? ''}`
      const answer = await send(limited, options.user ?? 'ada', { method: 'POST', path, body })
      return { status: answer.statusCode, retryAfter: answer.headers['retry-after'] }
    }
    const dry = { query: '?dryRun=All' }
    assert.equal((await write('a', dry)).status, 201)
    assert.equal((await write('a', dry)).status, 201)
    assert.equal((await write('a')).status, 201)
    // The limit is by source, whichever user writes.
    const rush = Array.from({ length: 10 }, (_, at) =>
      write(`b-${at}`, { user: at % 2 === 0 ? 'ada' : 'bob' }),
    )
    const refused = (await Promise.all(rush)).filter(({ status }) => status === 429)
    assert.ok(refused.length > 0)
    assert.ok(refused.every(({ retryAfter }) => retryAfter === '1'))
    await writeLimit('User', 1000)
    await eventually('the new limits are effective', async () => (await write('c')).status === 201)
    const { body } = await limited.server.ask('/metrics')
    assert.match(
      body,
      /^tidings_event_rate_limited_total\{type="SourceAndObject",unit="events"\} [1-9]/m,
    )
    assert.match(
      body,
      /^apiserver_request_total\{verb="POST",group="events.k8s.io",version="v1",resource="events",subresource="",scope="resource",component="apiserver",code="429"\} [1-9]/m,
    )
    assert.match(body, /^apiserver_request_duration_seconds_bucket\{verb="POST",.*le="60"\} [1-9]/m)
  })

  test('an invalid file fails the start', async () => {
    await writeLimit('Sever', 1)
    const { code, stderr } = await runToEnd([
      '--etcd-servers=http://127.0.0.1:1',
      '--secure-port=0',
      `--cert-dir=${folder}`,
      `--event-rate-limit-config-file=${file()}`,
    ])
    assert.equal(code, 1)
    assert.match(stderr, /--event-rate-limit-config-file.*limits\[0\]\.type/s)
  })

  test('watches are limited for each user, and are counted until they end', async () => {
    await using limited = await LimitedServer.start(['ada', 'bob'], ['--max-watches-per-user=1'])
    const watch = (user: string): Promise<IncomingMessage> =>
      send(limited, user, { method: 'GET', path: `${EVENTS}?watch=1&allowWatchBookmarks=1` })
    const first = await watch('ada')
    assert.equal(first.statusCode, 200)
    const second = await watch('ada')
    assert.equal(second.statusCode, 429)
    assert.match(second.headers['retry-after'] ?? '', /^[1-9][0-9]*$/)
    assert.equal((await watch('bob')).statusCode, 200)
    const running = async (): Promise<string | undefined> =>
      /^apiserver_longrunning_requests\{verb="WATCH".*\} (\d+)$/m.exec(
        (await limited.server.ask('/metrics')).body,
      )?.[1]
    assert.equal(await running(), '2')
    const lists =
      /^apiserver_watch_list_duration_seconds_count\{group="events.k8s.io",version="v1",resource="events",scope="\w+"\} 2$/m
    await eventually('both have sent the existing events', async () =>
      lists.test((await limited.server.ask('/metrics')).body),
    )
    first.destroy()
    await eventually('its slot is free', async () => (await watch('ada')).statusCode === 200)
    await eventually('it is no longer counted', async () => (await running()) === '2')
  })

  test('connections are limited for each user, and the excess one is closed', async () => {
    const flags = ['--max-connections-per-user=2']
    await using limited = await LimitedServer.start(['ada', 'bob'], flags)
    const get = { method: 'GET', path: EVENTS }
    const agents = Array.from({ length: 4 }, () => new https.Agent({ keepAlive: true }))
    const answers: IncomingMessage[] = []
    for (const agent of agents.slice(0, 3)) answers.push(await send(limited, 'ada', get, agent))
    assert.deepEqual(
      answers.map(({ statusCode, headers }) => [statusCode, headers.connection]),
      [
        [200, 'keep-alive'],
        [200, 'keep-alive'],
        [429, 'close'],
      ],
    )
    assert.equal(answers[2]?.headers['retry-after'], '10')
    assert.equal((await send(limited, 'bob', get, agents[3])).statusCode, 200)
    assert.equal((await send(limited, 'ada', get, agents[0])).statusCode, 200)
    agents[1]?.destroy()
    await eventually('there is room for another', async () => {
      const { statusCode } = await send(limited, 'ada', get)
      return statusCode === 200
    })
    for (const agent of agents) agent.destroy()
  })

  test('a memory limit sizes watches and connections, and asks for the settings of the launcher', async () => {
    const warning = 'The process was started without settings that keep it within the memory limit'
    const flags = ['--memory-limit=256Mi']
    await using bare = await LimitedServer.start(['ada'], flags, [], { NODE_OPTIONS: '' })
    const { missing } = await bare.server.logged(warning)
    assert.ok(String(missing).includes('NODE_OPTIONS=--max-semi-space-size=8'), String(missing))
    const { connections, watches } = await bare.server.logged('Memory limit')
    assert.deepEqual([connections, watches], [238, 896])
    const { body } = await bare.server.ask('/metrics')
    assert.match(body, /^tidings_client_number_limit\{limit="user-watches"\} 224$/m)
    const options = '--max-semi-space-size=8 --max-old-space-size=128'
    const launcher = { NODE_OPTIONS: options, MALLOC_ARENA_MAX: '1' }
    await using launched = await LimitedServer.start(['ada'], flags, [], launcher)
    await launched.server.logged('Memory limit')
    assert.equal(
      launched.server.log.find(({ msg }) => msg === warning),
      undefined,
    )
  })
})

/** Resolves with the head of the response. */
async function send(
  { server }: LimitedServer,
  user: string,
  call: { readonly method: string; readonly path: string; readonly body?: string },
  agent: https.Agent | false = false,
): Promise<IncomingMessage> {
  const request = https.request({
    host: '127.0.0.1',
    port: server.port,
    ca: server.ca,
    agent,
    method: call.method,
    path: call.path,
    headers: { authorization: `Bearer ${user}`, 'content-type': 'application/json' },
  })
  request.on('error', () => {})
  request.end(call.body)
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  answer.on('error', () => {}).resume()
  return answer
}
