/**
 * Many idle watches and idle connections of a few users, on a replica with little memory: some are
 * refused, in order, and its resident memory stays within the limit. A user who came late is served.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http2 from 'node:http2'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LimitedServer } from '../../support/limited-server.ts'
import { openTls, requestHead } from '../../support/raw-http1.ts'
import type { Tidings } from '../../support/tidings.ts'

const EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events'
/** The settings of the launcher and of the image. */
const LAUNCHER = { NODE_OPTIONS: '--max-semi-space-size=8', MALLOC_ARENA_MAX: '1' }
const USERS = ['ada', 'bob', 'cyd', 'dan']
const STREAMS = 100
/** The clients below take 306 with the limits of a large machine. */
const LIMIT_MIB = 256
const WATCHES_PER_USER = 1000
const CONNECTIONS_PER_USER = 500

function rssMib({ process: { pid } }: Tidings): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}

/** Counts the statuses of responses. */
class Statuses {
  readonly counts = new Map<number, number>()
  retryAfter = 0

  add(status: number, retryAfter: unknown): void {
    this.counts.set(status, (this.counts.get(status) ?? 0) + 1)
    if (status === 429 && retryAfter !== undefined) this.retryAfter += 1
  }

  of(status: number): number {
    return this.counts.get(status) ?? 0
  }

  toString(): string {
    return JSON.stringify(Object.fromEntries(this.counts))
  }
}

async function watch(port: number, user: string, count: number, to: Statuses): Promise<Closing[]> {
  const sessions: Closing[] = []
  for (let from = 0; from < count; from += STREAMS) {
    const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
    session.on('error', () => {})
    sessions.push(session)
    const opened = Array.from({ length: STREAMS }, async (_, n) => {
      const selector = `fieldSelector=reason%3Dnone${from + n}`
      const stream = session.request({
        ':path': `${EVENTS}?watch=1&resourceVersion=0&${selector}`,
        authorization: `Bearer ${user}`,
      })
      stream.on('error', () => {}).resume()
      const [headers] = await Promise.race([once(stream, 'response'), once(stream, 'close')])
      to.add(Number(headers?.[':status'] ?? 0), headers?.['retry-after'])
    })
    await Promise.all(opened)
  }
  return sessions
}

async function connectMany(
  port: number,
  user: string,
  count: number,
  to: Statuses,
): Promise<Closing[]> {
  const sockets: Closing[] = []
  for (let from = 0; from < count; from += 25) {
    const opened = Array.from({ length: 25 }, async () => {
      const socket = await openTls(port, { ALPNProtocols: ['http/1.1'] }).catch(() => undefined)
      if (socket === undefined) return to.add(0, undefined)
      sockets.push(socket)
      const headers = { authorization: `Bearer ${user}` }
      socket.write(requestHead({ path: `${EVENTS}?limit=1`, headers }))
      const [chunk] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
      const text = Buffer.isBuffer(chunk) ? chunk.toString('latin1') : ''
      to.add(Number(text.slice(9, 12)), /retry-after/i.exec(text)?.[0])
    })
    await Promise.all(opened)
  }
  return sockets
}

interface Closing {
  destroy(): unknown
}

test('memory: idle watches and connections stay within the memory limit', async (t) => {
  const flags = [`--memory-limit=${LIMIT_MIB}Mi`]
  await using limited = await LimitedServer.start([...USERS, 'eve'], flags, [], LAUNCHER)
  const { server } = limited
  const { port } = server
  const rss: number[] = [rssMib(server)]
  const [watches, connections] = [new Statuses(), new Statuses()]
  const clients: Closing[] = []
  for (const user of USERS) clients.push(...(await watch(port, user, WATCHES_PER_USER, watches)))
  rss.push(rssMib(server))
  t.diagnostic(`watches ${watches}: ${rss.map(Math.round).join(' -> ')} MiB`)
  for (const user of USERS) {
    clients.push(...(await connectMany(port, user, CONNECTIONS_PER_USER, connections)))
    rss.push(rssMib(server))
  }
  await sleep(1500)
  rss.push(rssMib(server))
  t.diagnostic(`connections ${connections}: ${rss.map(Math.round).join(' -> ')} MiB`)
  const headers = { authorization: 'Bearer eve' }
  const { status } = await server.ask(`${EVENTS}?limit=1`, { headers })
  for (const client of clients) client.destroy()
  assert.equal(status, 200, 'a user who came late is served')
  assert.ok(Math.max(...rss) < LIMIT_MIB, `${Math.max(...rss)} MiB`)
  assert.ok(watches.of(200) > 0 && watches.of(429) > 0, watches.toString())
  assert.equal(watches.retryAfter, watches.of(429), 'every refused watch says when to retry')
  assert.ok(connections.of(200) > 0 && connections.of(429) > 0, connections.toString())
  assert.equal(connections.retryAfter, connections.of(429), 'and every refused connection')
})
