import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makeRequest } from '../../gate/request.fixture.ts'
import { readTarget } from '../../gate/target.ts'
import { ANONYMOUS } from '../../gate/user.ts'
import type { Request, Response } from '../../http/exchange.ts'
import { loadPageFiles } from './page-files.ts'
import { uiService } from './ui-service.ts'

let folder: string
const caller = { user: ANONYMOUS, authorize: async () => {} }

/** Undefined when the service does not have the path. */
async function ask(
  path: string,
  change: Partial<Pick<Request, 'method' | 'headers' | 'query'>> = {},
  from = folder,
): Promise<Response | undefined> {
  const request = makeRequest({ path, ...change })
  const service = uiService(await loadPageFiles(from))
  return service.find(readTarget(request, 'local'))?.(request, caller)
}

async function found(...asked: Parameters<typeof ask>): Promise<Response> {
  const response = await ask(...asked)
  assert.ok(response, asked[0])
  return response
}

describe('the web page', () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-ui-'))
    await mkdir(join(folder, 'assets'))
    await writeFile(join(folder, 'secret.txt'), 'not served')
    for (const suffix of ['', '.br', '.gz']) {
      await writeFile(join(folder, `index.html${suffix}`), `page${suffix}`)
      await writeFile(join(folder, `assets/main-1a2b.js${suffix}`), `script${suffix}`)
    }
    await writeFile(join(folder, 'assets/icon-3c4d.svg'), 'icon')
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('makes browsers revalidate the page on each load, whatever its query', async () => {
    const response = await found('/ui/', { query: new URLSearchParams('view=lanes') })
    assert.equal(response.status, 200)
    assert.equal(String(response.body), 'page')
    assert.equal(response.headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(response.headers['cache-control'], 'no-cache')
    assert.equal(response.headers['vary'], 'Accept-Encoding')
  })

  test('lets browsers cache assets for good', async () => {
    const response = await found('/ui/assets/main-1a2b.js')
    assert.equal(String(response.body), 'script')
    assert.equal(response.headers['content-type'], 'text/javascript; charset=utf-8')
    assert.equal(response.headers['cache-control'], 'public, max-age=31536000, immutable')
    const icon = await found('/ui/assets/icon-3c4d.svg', { headers: { 'accept-encoding': 'br' } })
    assert.equal(String(icon.body), 'icon')
    assert.equal(icon.headers['content-encoding'], undefined)
    assert.equal(icon.headers['content-type'], 'image/svg+xml')
  })

  test('serves a form that the client accepts, with an ETag of its own', async () => {
    const forms = new Map<string, Response>()
    for (const [accepted, body] of [
      ['identity', 'page'],
      ['gzip', 'page.gz'],
      ['gzip, br', 'page.br'],
    ] as const) {
      const response = await found('/ui/', { headers: { 'accept-encoding': accepted } })
      assert.equal(String(response.body), body)
      forms.set(response.headers['etag'] ?? '', response)
    }
    const encodings = [...forms.values()].map(({ headers }) => headers['content-encoding'])
    assert.deepEqual(encodings, [undefined, 'gzip', 'br'])
  })

  test('returns 304 when the client has the bytes', async () => {
    const { headers } = await found('/ui/', { headers: { 'accept-encoding': 'br' } })
    const etag = headers['etag'] ?? ''
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const sent = { 'accept-encoding': 'br', 'if-none-match': known }
      const response = await found('/ui/', { headers: sent })
      assert.equal(response.status, 304, known)
      assert.equal(response.body, '')
      assert.equal(response.headers['etag'], etag)
      assert.equal(response.headers['cache-control'], 'no-cache')
    }
    for (const known of ['"other"', etag.slice(1, -1), '']) {
      const sent = { 'accept-encoding': 'br', 'if-none-match': known }
      assert.equal((await found('/ui/', { headers: sent })).status, 200, known)
    }
    // The bytes in another coding are other bytes.
    assert.equal((await found('/ui/', { headers: { 'if-none-match': etag } })).status, 200)
  })

  test('redirects the path without a slash to the page, below any prefix and with its query', async () => {
    const plain = await found('/ui')
    assert.equal(plain.status, 308)
    assert.equal(plain.headers['location'], 'ui/')
    const query = new URLSearchParams('view=lanes&text=a b\r\nx: y')
    const { headers } = await found('/ui', { query })
    assert.equal(headers['location'], 'ui/?view=lanes&text=a+b%0D%0Ax%3A+y')
    const long = new URLSearchParams({ text: 'x'.repeat(5000) })
    assert.equal((await found('/ui', { query: long })).headers['location'], 'ui/')
  })

  test('is listed at /, and not served under /clusters', () => {
    const { paths, isServerWide } = uiService(undefined)
    assert.deepEqual([paths, isServerWide], [['/ui/'], true])
  })

  test('allows only reads', async () => {
    for (const path of ['/ui', '/ui/', '/ui/assets/main-1a2b.js']) {
      assert.ok((await found(path, { method: 'HEAD' })).status < 400)
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const response = await found(path, { method })
        assert.equal(response.status, 405)
        assert.equal(response.headers['allow'], 'GET, HEAD')
      }
    }
  })

  test('serves only loaded files', async () => {
    for (const path of [
      '/ui/secret.txt',
      '/ui/index.html',
      '/ui/index.html.br',
      '/ui/assets/',
      '/ui/assets/main-1a2b.js.gz',
      '/ui/assets/../index.html',
      '/ui/assets/../../secret.txt',
      '/ui/assets/..\\..\\secret.txt',
      '/ui/assets//main-1a2b.js',
      '/ui/assets/main-1a2b.js/',
      '/ui/assets/main-1a2b.js\0',
      '/ui/assets/constructor',
      '/ui/sign-in',
      '/ui//',
    ]) {
      const response = await found(path)
      assert.equal(response.status, 404, path)
      assert.match(String(response.body), /"reason":"NotFound"/)
    }
    for (const path of ['/', '//ui/', '/uix', '/ui2/', '/UI/', '/api/ui/']) {
      assert.equal(await ask(path), undefined, path)
    }
  })

  test('sends the headers that protect the page with every response', async () => {
    for (const [path, method] of [
      ['/ui', 'GET'],
      ['/ui/', 'GET'],
      ['/ui/', 'POST'],
      ['/ui/assets/main-1a2b.js', 'GET'],
      ['/ui/unknown', 'GET'],
    ] as const) {
      const { headers } = await found(path, { method })
      assert.equal(
        headers['content-security-policy'],
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      )
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['referrer-policy'], 'no-referrer')
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
      assert.match(headers['permissions-policy'] ?? '', /(^|, )camera=\(\)(,|$)/)
      assert.doesNotMatch(headers['permissions-policy'] ?? '', /clipboard-write/)
      const cors = Object.keys(headers).filter((name) => name.startsWith('access-control'))
      assert.deepEqual(cors, [])
    }
  })

  test('returns a 404 that says what to do when the page was not built', async () => {
    const response = await found('/ui/', {}, join(folder, 'missing'))
    assert.equal(response.status, 404)
    assert.match(String(response.body), /npm run build/)
    assert.equal((await found('/ui/assets/main-1a2b.js', {}, join(folder, 'missing'))).status, 404)
  })

  test('refuses a file of an unknown type at start', async () => {
    await writeFile(join(folder, 'assets/page.exe'), '')
    await assert.rejects(loadPageFiles(folder), /page\.exe: no content type is known/)
    await rm(join(folder, 'assets/page.exe'))
  })
})
