/** The thread of `Readers`. */

import { once } from 'node:events'
import http2, { type ClientHttp2Session } from 'node:http2'
import { parentPort, workerData } from 'node:worker_threads'
import type { ReadersOptions } from './readers.ts'

const { url, path, headers, sessions, streamsPerSession }: ReadersOptions = workerData
const NEWLINE = 0x0a
/** Large enough for all frames between two turns of the event loop. */
const WINDOW_BYTES = 16 * 1024 * 1024

let received = 0
let wanted = Number.POSITIVE_INFINITY

function count(chunk: Buffer): void {
  for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) received++
  if (received < wanted) return
  received -= wanted
  wanted = Number.POSITIVE_INFINITY
  parentPort?.postMessage('received')
}

async function openSession(): Promise<ClientHttp2Session> {
  const session = http2.connect(url, {
    rejectUnauthorized: false,
    settings: { initialWindowSize: WINDOW_BYTES },
  })
  await once(session, 'connect')
  session.setLocalWindowSize(WINDOW_BYTES)
  return session
}

for (let index = 0; index < sessions; index++) {
  const session = await openSession()
  const streams = Array.from({ length: streamsPerSession }, () =>
    session.request({ ':path': path, ...headers }),
  )
  await Promise.all(streams.map((stream) => once(stream, 'response')))
  for (const stream of streams) stream.on('data', count)
}
parentPort?.on('message', (lines: number) => {
  wanted = lines
  count(Buffer.alloc(0))
})
parentPort?.postMessage('open')
