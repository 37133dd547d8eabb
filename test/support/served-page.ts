import assert from 'node:assert/strict'
import type { Tidings } from './tidings.ts'

const GZIPPED_BYTES_MAX = 80 * 1024

/**
 * Asks for the web page and for all that it names, without credentials, as a browser does. They must
 * be there as they were built, and small.
 */
export async function assertPageIsServed(server: Tidings): Promise<void> {
  const page = await server.ask('/ui/')
  assert.equal(page.status, 200)
  assert.match(String(page.headers['content-type']), /^text\/html/)
  const names = [...page.body.matchAll(/(?:src|href)="(assets\/[^"]+)"/g)].map(([, name]) => name)
  const kinds = names.map((name) => name?.split('.').at(-1))
  assert.deepEqual(kinds.sort(), ['css', 'js', 'svg'])
  let gzippedBytes = 0
  for (const name of names) {
    const plain = await server.ask(`/ui/${name}`)
    assert.equal(plain.status, 200, name)
    assert.equal(Number(plain.headers['content-length']), Buffer.byteLength(plain.body), name)
    const packed = await server.ask(`/ui/${name}`, { headers: { 'accept-encoding': 'gzip' } })
    assert.equal(packed.headers['content-encoding'], 'gzip', name)
    const bytes = Number(packed.headers['content-length'])
    assert.ok(bytes > 0 && bytes < plain.body.length, `${name}: ${bytes} bytes`)
    if (!name?.endsWith('.svg')) gzippedBytes += bytes
  }
  assert.ok(gzippedBytes > 1024 && gzippedBytes <= GZIPPED_BYTES_MAX, `${gzippedBytes} bytes`)
  assert.equal((await server.ask('/ui/packages.json')).status, 404)
}
