/** The list of the overview, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TestBrowser } from '../../support/browser.ts'
import { NIGHT } from '../../support/page-night.ts'
import { PageServer } from '../../support/page-server.ts'

describe('page: overview', () => {
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    await server.tell(NIGHT)
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  test('events are listed newest first; one opens, and its values filter', async () => {
    await using opened = await browser.open(server.base, { token: 'viewer' })
    opened.allowProblems(/status of 401/)
    const { page } = opened
    const rows = page.getByRole('list', { name: 'Events' }).getByRole('listitem')
    await rows.first().waitFor()
    assert.match((await rows.first().textContent()) ?? '', /Liveness probe failed/)
    const backOff = rows.filter({ hasText: 'Back-off restarting' })
    assert.match((await backOff.textContent()) ?? '', /x42 over 18m.*Warning.*BackOff/)
    await backOff.getByRole('button', { name: 'Back-off restarting' }).click()
    await backOff.getByText('42 times over 18m').waitFor()
    await backOff.getByText('app=checkout').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-open')
    await backOff.getByRole('button', { name: 'kubelet' }).click()
    await page.waitForURL(/controller=kubelet/)
    await rows.filter({ hasText: 'Scheduled' }).first().waitFor({ state: 'detached' })
    opened.assertNoProblems()
  })
})
