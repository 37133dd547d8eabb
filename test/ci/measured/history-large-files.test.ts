/** A file of 1 GB goes into a bucket and comes back without ever being in memory as a whole. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, open, rm } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { s3Environment } from '../../support/s3.ts'

const BYTES = 1_000_000_000
/** Node and the SDK take about 130 MB. */
const RSS_BYTES_MAX = 300_000_000
const store = join(import.meta.dirname, '../../../src/history/store/s3-store.ts')

test('1 GB is put and read in little memory', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-large-'))
  const path = join(folder, 'sparse')
  await using file = await open(path, 'w')
  await file.truncate(BYTES)
  await using server = await startSink()
  const program = `
    const { S3Store } = await import(${JSON.stringify(store)})
    const store = new S3Store({ bucket: 'archive', prefix: '' }, process.env)
    const options = { signal: AbortSignal.timeout(60_000) }
    await store.put('large', { path: ${JSON.stringify(path)}, bytes: ${BYTES} }, options)
    let bytes = 0
    for await (const piece of store.read('large', options)) bytes += piece.length
    console.log(JSON.stringify({ bytes, rssBytes: process.resourceUsage().maxRSS * 1024 }))`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', program],
    { env: { ...s3Environment(server.endpoint, 'any', 'any') } },
  )
  const { bytes, rssBytes } = JSON.parse(stdout)
  assert.equal(server.received(), BYTES)
  assert.equal(bytes, BYTES)
  assert.ok(rssBytes < RSS_BYTES_MAX, `${rssBytes} bytes`)
  await rm(folder, { recursive: true })
})

/** Counts what is put, and returns as many zeros. A store with a disk would be slower than the client. */
async function startSink() {
  let received = 0
  const zeros = Buffer.alloc(1_000_000)
  const server = http.createServer(async (request, response) => {
    if (request.method === 'PUT') {
      for await (const piece of request) received += piece.length
      response.end()
      return
    }
    response.writeHead(200, { 'content-length': BYTES })
    for (let sent = 0; sent < BYTES; sent += zeros.length) {
      if (!response.write(zeros)) await once(response, 'drain')
    }
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received: () => received,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
