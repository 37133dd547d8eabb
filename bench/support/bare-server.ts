/**
 * A baseline for a server on Node, in its own process, which sends its port to the parent: `/` is
 * the minimum (TLS and HTTP/2, the body read, a response of 900 bytes); `/list` lists the events of
 * a namespace without a cache: read from etcd, decoded, encoded.
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
const short = Buffer.alloc(900, 'x')

const server = http2.createSecureServer(await makeSelfSigned(['127.0.0.1']))
server.on('stream', (stream, headers) => {
  stream.on('data', () => {})
  stream.once('end', () => {
    if (headers[':path'] === '/') answer(stream, short)
    else void decodedList().then((list) => answer(stream, list))
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

/** All in one read; each event follows the header line of its value. */
async function decodedList(): Promise<Buffer> {
  const { kvs, revision } = await client.range(range)
  if (kvs.length === 0) throw new Error('there is nothing to list')
  const items = kvs.map(({ value }) => JSON.parse(value.toString('utf8', value.indexOf('\n') + 1)))
  const metadata = { resourceVersion: String(revision) }
  return Buffer.from(JSON.stringify({ kind: 'EventList', metadata, items }))
}
