/**
 * Sends load to a server from its own thread, so that measurements in other threads are not
 * delayed.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { type LoadConnection, openAll, openHttp1, openHttp2 } from './load-connection.ts'
import type { LoadOrder, LoadResult } from './request-load.ts'

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
  readonly wire: LoadConnection
  readonly token: string
  open: number
}

const open = order.protocol === 'http1' ? openHttp1 : openHttp2
const connections: Connection[] = (await openAll(order.connections, () => open(order, note))).map(
  (wire, at) => ({ wire, token: order.tokens[at % order.tokens.length] ?? '', open: 0 }),
)
const free = [...connections]
parentPort?.postMessage('ready')
await new Promise((go) => parentPort?.once('message', go))
const startedAt = performance.now()
if (order.perSecond === undefined) closedLoop(order.concurrency ?? 1)
else openLoop(order.perSecond)

/** Keeps the configured number of requests in flight. */
function closedLoop(concurrency: number): void {
  const next = (): void => {
    const connection = freeConnection()
    if (isOver || connection === undefined) return
    send(connection, next)
  }
  for (let started = 0; started < concurrency; started++) next()
  setTimeout(end, order.ms)
}

/**
 * Sends on a schedule, whatever the server does; a request without a free stream is only counted.
 */
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

/** Ends when nothing more is sent and every request has its response. */
function endIfDone(): void {
  if (isLast && connections.every(({ open }) => open === 0)) end()
}

/** Round-robin over the connections that can take a request. */
function freeConnection(): Connection | undefined {
  serial += 1
  return free[serial % free.length]
}

function take(connection: Connection): void {
  connection.open += 1
  if (connection.open < connection.wire.openMax) return
  const last = free.pop()
  if (last !== undefined && last !== connection) free[free.indexOf(connection)] = last
}

function giveBack(connection: Connection): void {
  if (connection.open === connection.wire.openMax) free.push(connection)
  connection.open -= 1
}

function send(connection: Connection, done: () => void): void {
  counts.sent += 1
  const asked = order.requests[counts.sent % order.requests.length] ?? { method: 'GET', path: '/' }
  const numbered = (text: string): string =>
    text
      .replaceAll('NUMBER', String(Math.floor(counts.sent / order.requests.length) % names))
      .replaceAll('UNIQUE', `${order.id}-${counts.sent}`)
  const sentAt = performance.now()
  take(connection)
  const exchange = {
    method: asked.method,
    path: numbered(asked.path),
    headers: {
      authorization: `Bearer ${connection.token}`,
      ...(asked.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: asked.body === undefined ? undefined : numbered(asked.body),
  }
  connection.wire.ask(exchange, (status, retryAfter) => {
    giveBack(connection)
    if (!isOver) count(status, retryAfter, performance.now() - sentAt)
    done()
    endIfDone()
  })
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
  for (const { wire } of connections) wire.destroy()
}
