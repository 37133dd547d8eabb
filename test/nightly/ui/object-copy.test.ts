/** What the page copies is run: by a shell, with the real kubectl and curl. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { TestBrowser, type TestPage } from '../../support/browser.ts'
import { findKubectl, Kubectl } from '../../support/kubectl.ts'
import { PageServer } from '../../support/page-server.ts'

const run = promisify(execFile)

/** Each tries to leave its quotes, or to be more than one term of the selector. */
const HOSTILE = [
  `web'; touch pwned; '`,
  'web"$(touch pwned)"`touch pwned`',
  'web,type=Warning\\,a=b !1 * ? ~ # & | < >',
  'web\ntouch pwned\n',
  'web\u0003\u001b[31m\u202etouch pwned\rtouch pwned',
] as const

describe('page: copied commands', () => {
  let server: PageServer
  let browser: TestBrowser
  let kubectl: string | undefined
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    kubectl = await findKubectl()
    const { folder } = server.tidings
    if (kubectl !== undefined) await Kubectl.as('viewer', server.tidings, kubectl)
    await copyFile(join(folder, 'tidings.crt'), join(folder, 'ca.crt'))
    await server.write([
      { minutesAgo: 9, reason: 'Plain', object: 'Pod/web-0', note: 'A note' },
      {
        minutesAgo: 8,
        reason: 'Elsewhere',
        object: 'Pod/x',
        namespace: 'batch',
        note: 'b',
        members: { related: { kind: 'Pod', namespace: 'shop', name: 'web-0' } },
      },
      { minutesAgo: 7, reason: 'Other', object: 'Pod/web-1', note: 'Not of this object' },
      ...HOSTILE.map((name, index) => ({
        minutesAgo: 5,
        reason: `Hostile${index}`,
        object: 'Pod/x',
        note: name,
        members: { involvedObject: { kind: 'Pod', namespace: 'shop', name } },
      })),
    ])
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  async function open(parameters: Readonly<Record<string, string>>): Promise<TestPage> {
    const path = `?${new URLSearchParams(parameters)}`
    return await browser.open(server.base, { path, token: 'viewer' })
  }

  /** Runs the command as if it was pasted: by sh, in a folder with the CA, with a token in the environment. */
  async function shell(command: string): Promise<string> {
    const { folder } = server.tidings
    assert.doesNotMatch(command.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u)
    const env = {
      // biome-ignore lint/style/noProcessEnv: the shell finds kubectl and curl as the user's does.
      PATH: process.env['PATH'],
      HOME: folder,
      KUBECONFIG: join(folder, 'kubeconfig-viewer'),
      TOKEN: 'viewer',
    }
    const { stdout } = await run('sh', ['-ec', command], { cwd: folder, env })
    assert.ok(!(await readdir(folder)).includes('pwned'))
    return stdout
  }

  /** The reasons of events in JSON, sorted. */
  function reasonsOf(printed: string): readonly string[] {
    return [...printed.matchAll(/"reason": ?"(\w+)"/g)].map(([, reason = '']) => reason).sort()
  }

  test('print the events of an object', async (t) => {
    await using opened = await open({ view: 'object', about: 'Pod/shop/web-0' })
    const curl = await opened.copied('curl')
    assert.ok(!curl.includes('viewer'))
    assert.deepEqual(reasonsOf(await shell(curl)), ['Elsewhere', 'Plain'])
    const markdown = await opened.copied('Markdown')
    assert.match(markdown, /\| `Plain` \| `Pod\/shop\/web-0` \| 1 \| `A note` \| `kubelet` \|/)
    const command = await opened.copied('kubectl')
    opened.assertNoProblems()
    if (kubectl === undefined) return t.skip('no kubectl')
    const printed = await shell(command)
    assert.match(printed, /Plain/)
    assert.match(printed, /Elsewhere/)
    assert.doesNotMatch(printed, /Other/)
  })

  for (const [index, name] of HOSTILE.entries()) {
    test(`print the events of an object whatever its name is: ${JSON.stringify(name)}`, async (t) => {
      const about = `Pod/shop/${name}`
      await using opened = await open({ view: 'object', about })
      assert.deepEqual(reasonsOf(await shell(await opened.copied('curl'))), [`Hostile${index}`])
      const lines = (await opened.copied('Markdown')).trimEnd().split('\n')
      assert.deepEqual([lines.length, lines.at(-1)?.split('|').length], [5, 10])
      const command = await opened.copied('kubectl')
      opened.assertNoProblems()
      if (kubectl === undefined) return t.skip('no kubectl')
      const printed = await shell(command)
      assert.deepEqual(printed.match(/Hostile\d/g), [`Hostile${index}`])
    })

    test(`print the events of lanes whatever the filter is: ${JSON.stringify(name)}`, async (t) => {
      await using opened = await open({ view: 'lanes', namespace: 'shop', text: name })
      await opened.page.getByText('1 event of 1 object').waitFor()
      assert.deepEqual(reasonsOf(await shell(await opened.copied('curl'))), [`Hostile${index}`])
      const command = await opened.copied('kubectl')
      opened.assertNoProblems()
      if (kubectl === undefined) return t.skip('no kubectl')
      assert.deepEqual((await shell(command)).match(/Hostile\d/g), [`Hostile${index}`])
    })
  }

  test('print the events of another cluster', async (t) => {
    const { status } = await server.tidings.ask('/clusters/eu/api/v1/namespaces/shop/events', {
      method: 'POST',
      headers: { authorization: 'Bearer root', 'content-type': 'application/json' },
      body: JSON.stringify({
        metadata: { name: 'a', namespace: 'shop' },
        reason: 'Abroad',
        message: 'm',
        type: 'Normal',
        source: { component: 'c' },
        involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0' },
      }),
    })
    assert.equal(status, 201)
    const parameters = { view: 'object', about: 'Pod/shop/web-0', cluster: 'eu' }
    const path = `?${new URLSearchParams(parameters)}`
    await using opened = await browser.open(server.base, { path, token: 'root' })
    await opened.page.getByText('Abroad').waitFor()
    const asRoot = (command: string): string => command.replaceAll('$TOKEN', 'root')
    assert.deepEqual(reasonsOf(await shell(asRoot(await opened.copied('curl')))), ['Abroad'])
    const command = await opened.copied('kubectl')
    opened.assertNoProblems()
    if (kubectl === undefined) return t.skip('no kubectl')
    assert.match(await shell(command.replace('get events', '--token=root get events')), /Abroad/)
  })

  test('are shown for copying where the clipboard is refused', async () => {
    await using opened = await open({ view: 'object', about: 'Pod/shop/web-0' })
    const { page } = opened
    const button = page.getByRole('button', { name: 'Copy as kubectl' })
    await button.waitFor()
    await page.evaluate(
      'navigator.clipboard.writeText = () => Promise.reject(new DOMException("no", "NotAllowedError"))',
    )
    await button.click()
    const dialog = page.getByRole('dialog', { name: 'Copy this text' })
    await dialog.waitFor()
    const selected = await page.evaluate('String(getSelection())')
    assert.match(String(selected), /^kubectl get events -n shop --field-selector mentions=Pod/)
    await opened.assertAccessible()
    await opened.screenshot('copy-dialog')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  })
})
