/** A page of another origin, in a browser whose user the server knows by a client certificate. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestBrowser } from '../../support/browser.ts'
import { ClientAuthority } from '../../support/client-certs.ts'
import { PageServer } from '../../support/page-server.ts'

const EVENT = JSON.stringify({
  metadata: { name: 'forged', namespace: 'shop' },
  involvedObject: { kind: 'Pod', name: 'web-0', namespace: 'shop' },
  reason: 'Forged',
  type: 'Normal',
})

/** What a hostile page can try with the credentials of its visitor. Runs in the browser. */
const ATTEMPTS = `
async (base) => {
  const path = '/api/v1/namespaces/shop/events'
  const attempt = async (init) => {
    try {
      const response = await fetch(base + path, { credentials: 'include', ...init })
      return response.type === 'opaque' ? 'opaque' : 'read ' + response.status
    } catch { return 'refused' }
  }
  const event = ${JSON.stringify(EVENT)}
  const frame = document.createElement('iframe')
  frame.name = 'framed'
  frame.src = base + '/ui/'
  document.body.append(frame)
  const form = document.createElement('form')
  form.method = 'POST'
  form.action = base + path
  form.enctype = 'text/plain'
  form.target = 'sink'
  const input = document.createElement('input')
  input.name = event.slice(0, -1) + ',"note":"'
  input.value = '"}'
  form.append(input)
  const sink = document.createElement('iframe')
  sink.name = 'sink'
  document.body.append(sink, form)
  form.submit()
  return {
    get: await attempt({}),
    getOpaque: await attempt({ mode: 'no-cors' }),
    json: await attempt({ method: 'POST', body: event, headers: { 'content-type': 'application/json' } }),
    untyped: await attempt({ method: 'POST', mode: 'no-cors', body: new Blob([event]) }),
    remove: await attempt({ method: 'DELETE' }),
    bearer: await attempt({ headers: { authorization: 'Bearer root' } }),
  }
}`

test('page: other origins cannot use the API with the credentials of a visitor', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-hostile-'))
  const authority = await ClientAuthority.create('people')
  await writeFile(join(folder, 'ca.crt'), authority.cert)
  await using server = await PageServer.start([`--client-ca-file=${join(folder, 'ca.crt')}`])
  await server.write([{ minutesAgo: 5, reason: 'Kept', object: 'Pod/web-0', note: 'still here' }])
  const hostile = http.createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><body>hostile</body>')
  })
  hostile.listen(0, '127.0.0.1')
  await once(hostile, 'listening')
  try {
    await using browser = await TestBrowser.start()
    const certificate = await authority.issue('root', {
      subject: [{ O: ['system:masters'] }, { CN: ['root'] }],
    })
    await using opened = await browser.open(server.base, { certificate })
    // The visitor is signed in, so an attempt that reached the API would have all permissions.
    await opened.page.getByText('still here').first().waitFor()
    // The browser reports every attempt that is refused.
    opened.allowProblems(/./)
    const { page } = opened
    await page.goto(`http://127.0.0.1:${(hostile.address() as AddressInfo).port}/`)
    const navigated = (path: string): Promise<{ status(): number }> =>
      page.waitForResponse(
        (response) => response.url().endsWith(path) && response.request().isNavigationRequest(),
      )
    const posted = navigated('/events')
    const framed = navigated('/ui/')
    const outcome = await page.evaluate(`(${ATTEMPTS})(${JSON.stringify(server.base)})`)
    const { untyped, getOpaque, ...readable } = outcome as Record<string, string>
    assert.deepEqual(
      readable,
      { get: 'refused', json: 'refused', remove: 'refused', bearer: 'refused' },
      'the browser gets no permission to read or to send',
    )
    assert.deepEqual(new Set([untyped, getOpaque]), new Set(['opaque']))
    assert.equal((await posted).status(), 403, 'the form is refused')
    assert.equal((await framed).status(), 403, 'the frame is refused')
    const hasPage = 'document.getElementById("page") !== null'
    assert.equal(await page.frame('framed')?.evaluate(hasPage), false, 'the frame has no page')
  } finally {
    hostile.close()
    hostile.closeAllConnections()
    await rm(folder, { recursive: true, force: true })
  }
  const { body } = await server.tidings.ask('/api/v1/namespaces/shop/events', {
    headers: { authorization: 'Bearer root' },
  })
  const reasons = JSON.parse(body).items.map((event: { reason: string }) => event.reason)
  assert.deepEqual(reasons, ['Kept'], 'what was sent without permission to read changed nothing')
})
