/** The ways to the page that need no pasted token, and what it does when it is refused later. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, test } from 'node:test'
import type { Route } from 'playwright-core'
import { TestBrowser } from '../../support/browser.ts'
import { ClientAuthority } from '../../support/client-certs.ts'
import { startDev } from '../../support/dev-server.ts'
import { findKubectl } from '../../support/kubectl.ts'
import { PageServer } from '../../support/page-server.ts'

const kubectl = await findKubectl()

describe('page: ways in', () => {
  let folder: string
  let authority: ClientAuthority
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-ways-in-'))
    authority = await ClientAuthority.create('people')
    await writeFile(join(folder, 'ca.crt'), authority.cert)
    server = await PageServer.start([
      `--client-ca-file=${join(folder, 'ca.crt')}`,
      '--anonymous-auth=false',
    ])
    browser = await TestBrowser.start()
    await server.write([
      { minutesAgo: 5, reason: 'Scheduled', object: 'Pod/web-0', note: 'Assigned to node-4' },
    ])
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  test('a client certificate is enough', async () => {
    const certificate = await authority.issue('viewer')
    await using opened = await browser.open(server.base, { certificate })
    await opened.page.getByText('Assigned to node-4').first().waitFor()
    await opened.page.getByRole('banner').getByText('viewer', { exact: true }).waitFor()
    assert.equal(await opened.page.getByRole('button', { name: 'Sign out' }).count(), 0)
  })

  for (const prefix of ['/', '/a/prefix/']) {
    test(`kubectl proxy is enough, at ${prefix}`, { skip: whyNot() }, async () => {
      await using proxy = await KubectlProxy.start(server, prefix)
      await using opened = await browser.open(`${proxy.base}${prefix.slice(0, -1)}`)
      await opened.page.getByText('Assigned to node-4').first().waitFor()
    })
  }

  test('a token that is revoked ends the session, and says so', async () => {
    await using opened = await browser.open(server.base)
    opened.allowProblems(/status of 40[13]/)
    await opened.signIn('sam')
    await server.setTokens('root,root,1,system:masters\nviewer,viewer,2\n')
    const refused = opened.page.getByRole('alert').getByText('no longer accepts your token')
    for (let round = 0; round < 100 && (await refused.count()) === 0; round++) {
      const refresh = opened.page.getByRole('button', { name: 'Refresh' })
      await refresh.click({ timeout: 1_000 }).catch(() => {})
      await opened.page.waitForTimeout(200)
    }
    await refused.waitFor()
  })

  test('the end of a session of a proxy is said, with a way to begin another', async () => {
    await using opened = await browser.open(server.base)
    opened.allowProblems(/status of 401/)
    const { page } = opened
    await page.getByLabel('Bearer token').waitFor()
    // This is what a proxy in front would do.
    await page.route(/\/apis?\//, (route) =>
      route.continue({ headers: { ...route.request().headers(), authorization: 'Bearer viewer' } }),
    )
    await page.reload()
    await page.getByText('Assigned to node-4').first().waitFor()
    await page.unroute(/\/apis?\//)
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByRole('heading', { name: 'Your session has ended' }).waitFor()
    await opened.assertAccessible()
    await opened.screenshot('session-ended')
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByLabel('Bearer token').waitFor()
  })

  test('a server that cannot be reached does not cost the kept token', async () => {
    await using opened = await browser.open(server.base)
    opened.allowProblems(/ERR_FAILED/)
    const { page } = opened
    await page.getByLabel('Keep it in this tab').check()
    await opened.signIn('viewer')
    await page.route('**/selfsubjectreviews*', (route) => route.abort())
    await page.reload()
    await page.getByText('The server cannot be reached').waitFor()
    await opened.assertAccessible()
    // The error stays on the screen while the page retries by itself, at growing intervals.
    const retried = page.waitForRequest('**/selfsubjectreviews*')
    const held: Route[] = []
    await page.route('**/selfsubjectreviews*', (route) => held.push(route), { times: 1 })
    await retried
    assert.equal(await page.getByText('The server cannot be reached').count(), 1)
    await held[0]?.abort()
    await page.getByText(/The page retries in [2-9] s/).waitFor()
    await page.getByRole('button', { name: 'Try again' }).click()
    // Later requests succeed.
    await page.unroute('**/selfsubjectreviews*')
    await page.getByText('Assigned to node-4').first().waitFor()
  })
})

test('page: the link of tidings dev signs in once, and leaves no code behind', async () => {
  const dev = await startDev()
  await using browser = await TestBrowser.start()
  try {
    const link = dev.lines.join('\n').match(/https:\/\/localhost:\d+\/ui\/#code=\w+/)?.[0] ?? ''
    const [base = '', path = ''] = link.split('/ui/')
    await using first = await browser.open(base)
    first.allowProblems(/status of 401/, /ERR_FAILED/)
    await first.page.getByLabel('Bearer token').waitFor()
    // The tab has the page already, and the server is away for a moment: the code is not lost.
    await first.page.route('**/ui/sign-in?*', (route) => route.abort())
    await first.page.evaluate(`location.href = ${JSON.stringify(link)}`)
    await first.page.getByText('The server cannot be reached').waitFor()
    assert.equal(first.page.url(), `${base}/ui/`)
    await first.page.unroute('**/ui/sign-in?*')
    await first.page.getByRole('button', { name: 'Try again' }).click()
    await first.page.getByRole('navigation', { name: 'Views' }).waitFor()
    assert.equal(first.page.url(), `${base}/ui/`)
    await first.page.reload()
    await first.page.getByRole('navigation', { name: 'Views' }).waitFor()
    first.assertNoProblems()

    await using second = await browser.open(base, { path })
    second.allowProblems(/status of 401/)
    await second.page.getByText('This link no longer signs you in').waitFor()
    assert.equal(second.page.url(), `${base}/ui/`)
  } finally {
    dev.child.kill('SIGTERM')
    await once(dev.child, 'exit')
  }
})

function whyNot(): string | false {
  return kubectl === undefined ? 'there is no kubectl on this machine' : false
}

/** A real `kubectl proxy`, with the token of the user viewer. */
class KubectlProxy implements AsyncDisposable {
  readonly base: string
  readonly #stop: () => Promise<void>

  static async start({ base, tidings }: PageServer, prefix: string): Promise<KubectlProxy> {
    const child = spawn(
      kubectl ?? '',
      [
        'proxy',
        '--port=0',
        `--api-prefix=${prefix}`,
        '--token=viewer',
        `--server=${base}`,
        `--certificate-authority=${join(tidings.folder, 'tidings.crt')}`,
        '--kubeconfig=/dev/null',
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const ended = once(child, 'exit')
    const [line] = await once(createInterface({ input: child.stdout }), 'line')
    const address = /127\.0\.0\.1:\d+/.exec(String(line))?.[0]
    return new KubectlProxy(`http://${address}`, async () => {
      child.kill('SIGTERM')
      await ended
    })
  }

  private constructor(base: string, stop: () => Promise<void>) {
    this.base = base
    this.#stop = stop
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop()
  }
}
