/**
 * A baseline for a server on Node, in its own process, which sends its port to the parent.
 *
 * - `/` and `/bytes/<n>` are the minimum: TLS and HTTP/2, the body read, a response of 900 or n bytes.
 * - `/watch` streams what `/publish/<n>` sends to all streams at once: n bytes each.
 * - `/list` lists the events of a namespace without a cache: read from etcd, decoded, encoded.
 *
 *   node bench/support/bare-server.ts <etcd endpoint> <prefix> <namespace>
 */
import { once } from 'node:events'
import http2, { type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { EtcdClient } from '../../src/etcd/client.ts'
import { makeSelfSigned } from '../../src/http/tls/self-signed.ts'
import { EventKeys } from '../../src/storage/etcd/keys.ts'

const [endpoint = '', prefix = '', namespace = ''] = process.argv.slice(2)
const client = new EtcdClient({ endpoints: [endpoint], defaultTimeoutMs: 10_000 })
const range = new EventKeys(prefix).range({ cluster: 'local', namespace })
const DEFAULT_BYTES = 900
const bodies = new Map<number, Buffer>()
const watchers = new Set<ServerHttp2Stream>()

const server = http2.createSecureServer(await makeSelfSigned(['127.0.0.1']))
server.on('stream', (stream, headers) => {
  stream.on('data', () => {})
  stream.once('end', () => {
    const [, kind = '', size = String(DEFAULT_BYTES)] = (headers[':path'] ?? '').split('/')
    if (kind === 'list') void decodedList().then((list) => answer(stream, list))
    else if (kind === 'watch') watch(stream)
    else {
      if (kind === 'publish') for (const watcher of watchers) watcher.write(bytes(Number(size)))
      answer(stream, bytes(Number(size)))
    }
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.((server.address() as AddressInfo).port)
process.once('disconnect', () => process.exit())

function answer(stream: ServerHttp2Stream, body: Buffer): void {
  // The measuring process has ended.
  if (stream.destroyed) return
  const length = String(body.length)
  stream.respond({ ':status': 200, 'content-type': 'application/json', 'content-length': length })
  stream.end(body)
}

function watch(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200, 'content-type': 'application/json' })
  watchers.add(stream)
  stream.once('close', () => watchers.delete(stream))
}

function bytes(length: number): Buffer {
  const known = bodies.get(length) ?? Buffer.from(`${'x'.repeat(Math.max(0, length - 1))}\n`)
  bodies.set(length, known)
  return known
}

/** All in one read; each event follows the header line of its value. */
async function decodedList(): Promise<Buffer> {
  const { kvs, revision } = await client.range(range)
  if (kvs.length === 0) throw new Error('there is nothing to list')
  const items = kvs.map(({ value }) => JSON.parse(value.toString('utf8', value.indexOf('\n') + 1)))
  const metadata = { resourceVersion: String(revision) }
  return Buffer.from(JSON.stringify({ kind: 'EventList', metadata, items }))
}
