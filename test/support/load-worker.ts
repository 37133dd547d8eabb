/**
 * Puts load on a server from a thread of its own, so that whoever measures beside it is not held up.
 * Over HTTP/2, as API clients do.
 */
import http2 from 'node:http2'
import { parentPort, workerData } from 'node:worker_threads'
import type { LoadOrder, LoadResult } from './request-load.ts'

/** How many requests a client may have open on one connection. */
const STREAMS_MAX = 100
const TICK_MS = 2
const NAMES_DEFAULT = 200

const order = workerData as LoadOrder
const names = order.names ?? NAMES_DEFAULT
const counts = { sent: 0, unsent: 0, ok: 0, refused: 0, refusedWithoutDate: 0, failed: 0 }
const others = new Map<string, number>()
const latenciesMs: number[] = []
let isOver = false
let isLast = false
let serial = 0

interface Connection {
  readonly session: http2.ClientHttp2Session
  readonly token: string
  open: number
}

const connections: Connection[] = Array.from({ length: order.connections }, connect)
await Promise.all(
  connections.map(({ session }) => new Promise((done) => session.once('remoteSettings', done))),
)
parentPort?.postMessage('ready')
await new Promise((go) => parentPort?.once('message', go))
const startedAt = performance.now()
if (order.perSecond === undefined) closedLoop(order.concurrency ?? 1)
else openLoop(order.perSecond)

function connect(_: unknown, at: number): Connection {
  const session = http2.connect(`https://127.0.0.1:${order.port}`, { ca: order.ca })
  session.on('error', (error) => note(`connection: ${error.message}`))
  session.on('goaway', (code) => note(`goaway ${code}`))
  return { session, token: order.tokens[at % order.tokens.length] ?? '', open: 0 }
}

/** As many as are asked for under way at all times. */
function closedLoop(concurrency: number): void {
  const next = (): void => {
    const connection = freeConnection()
    if (isOver || connection === undefined) return
    send(connection, next)
  }
  for (let started = 0; started < concurrency; started++) next()
  setTimeout(end, order.ms)
}

/** On a schedule, whatever the server does; what finds no free stream is counted and forgotten. */
function openLoop(perSecond: number): void {
  let due = 0
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - startedAt
    if (elapsedMs >= order.ms) {
      clearInterval(timer)
      isLast = true
      setTimeout(end, order.countsLate === true ? order.deadlineMs : 0)
      endIfDone()
      return
    }
    for (const target = (elapsedMs / 1000) * perSecond; due < target; due++) {
      const connection = freeConnection()
      if (connection === undefined) counts.unsent += 1
      else send(connection, () => {})
    }
  }, TICK_MS)
}

/** Nothing more is sent, and all has been answered. */
function endIfDone(): void {
  if (isLast && connections.every(({ open }) => open === 0)) end()
}

function freeConnection(): Connection | undefined {
  for (let tried = 0; tried < connections.length; tried++) {
    serial += 1
    const connection = connections[serial % connections.length]
    if (connection !== undefined && connection.open < STREAMS_MAX) return connection
  }
  return undefined
}

function send(connection: Connection, done: () => void): void {
  counts.sent += 1
  const asked = order.requests[counts.sent % order.requests.length] ?? { method: 'GET', path: '/' }
  const numbered = (text: string): string =>
    text
      .replaceAll('NUMBER', String(Math.floor(counts.sent / order.requests.length) % names))
      .replaceAll('UNIQUE', `${order.id}-${counts.sent}`)
  const sentAt = performance.now()
  connection.open += 1
  const stream = connection.session.request(
    {
      ':method': asked.method,
      ':path': numbered(asked.path),
      authorization: `Bearer ${connection.token}`,
      ...(asked.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    { endStream: asked.body === undefined },
  )
  if (asked.body !== undefined) stream.end(numbered(asked.body))
  let status = 0
  let retryAfter: string | undefined
  stream.on('response', (headers) => {
    status = headers[':status'] ?? 0
    retryAfter = headers['retry-after']
  })
  stream.on('error', (error) => note(error.message))
  stream.on('close', () => {
    connection.open -= 1
    if (!isOver) count(status, retryAfter, performance.now() - sentAt)
    done()
    endIfDone()
  })
  stream.resume()
}

function count(status: number, retryAfter: string | undefined, ms: number): void {
  if (status >= 200 && status < 300 && ms <= order.deadlineMs) {
    counts.ok += 1
    latenciesMs.push(ms)
  } else if (status === 429) {
    counts.refused += 1
    if (!/^[1-9][0-9]*$/.test(retryAfter ?? '')) counts.refusedWithoutDate += 1
  } else {
    counts.failed += 1
    note(`status ${status}${ms > order.deadlineMs ? ', late' : ''}`)
  }
}

function note(what: string): void {
  others.set(what, (others.get(what) ?? 0) + 1)
}

function end(): void {
  if (isOver) return
  isOver = true
  latenciesMs.sort((a, b) => a - b)
  const result: LoadResult = {
    ...counts,
    seconds: order.ms / 1000,
    p50Ms: latenciesMs[Math.floor(latenciesMs.length / 2)] ?? 0,
    p99Ms: latenciesMs[Math.floor(latenciesMs.length * 0.99)] ?? 0,
    others: Object.fromEntries(others),
  }
  parentPort?.postMessage(result)
  for (const { session } of connections) session.destroy()
}
