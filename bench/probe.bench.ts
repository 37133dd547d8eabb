/**
 * How many probes a second one server serves over TLS, beside the rate of Node's own HTTP/2 server
 * on the same machine in the same run. Needs h2load (Debian: nghttp2-client).
 *
 *   npm run bench -- probe
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { isMainThread, Worker } from 'node:worker_threads'
import { makeSelfSigned } from '../src/http/tls/self-signed.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { Tidings } from '../test/support/tidings.ts'

const REQUESTS = 40_000

if (isMainThread) await measure()
else await serveBare()

async function measure(): Promise<void> {
  await using etcd = await startEtcd()
  await using server = await Tidings.start([`--etcd-servers=${etcd.endpoints[0]}`])
  await server.until('/readyz', ({ status }) => status === 200, 10_000)
  const bare = new Worker(new URL(import.meta.url))
  const [barePort] = await once(bare, 'message')

  const rates = {
    'bare node:http2, no limits, responds "ok"': load(barePort, '/', []),
    'tidings /livez, HTTP/2': load(server.port, '/livez', []),
    'tidings /readyz, HTTP/2': load(server.port, '/readyz', []),
    'tidings /livez, HTTP/1.1': load(server.port, '/livez', ['--h1']),
  }
  await bare.terminate()
  const base = Object.values(rates)[0] ?? 1
  for (const [name, rate] of Object.entries(rates)) {
    const ratio = (rate / base).toFixed(2)
    process.stdout.write(
      `${name.padEnd(44)} ${Math.round(rate).toString().padStart(7)}/s  x ${ratio}\n`,
    )
  }
}

async function serveBare(): Promise<void> {
  const server = http2.createSecureServer(await makeSelfSigned(['127.0.0.1']))
  server.on('stream', (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'text/plain', 'content-length': '2' })
    stream.end('ok')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { parentPort } = await import('node:worker_threads')
  parentPort?.postMessage((server.address() as AddressInfo).port)
}

/** Requests a second, all of which must have a 2xx response. */
function load(port: number, path: string, flags: readonly string[]): number {
  const report = execFileSync(
    'h2load',
    [
      ...flags,
      '-n',
      String(REQUESTS),
      '-c',
      '8',
      '-m',
      flags.length > 0 ? '1' : '32',
      `https://127.0.0.1:${port}${path}`,
    ],
    { encoding: 'utf8' },
  )
  const rate = /finished in [^,]+, ([\d.]+) req\/s/.exec(report)?.[1]
  if (rate === undefined || !report.includes(`${REQUESTS} 2xx`)) throw new Error(report)
  return Number(rate)
}
