/** Signing in to the page, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TestBrowser } from '../../support/browser.ts'
import { PageServer } from '../../support/page-server.ts'

describe('page: sign-in', () => {
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    await server.tell([
      { minutesAgo: 5, reason: 'Scheduled', object: 'Pod/web-0', note: 'Assigned to node-4' },
    ])
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  test('a pasted token opens the events, and is neither in the URL nor stored', async () => {
    await using opened = await browser.open(server.base)
    opened.allowProblems(/status of 401/)
    const { page } = opened
    await page.getByLabel('Bearer token').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('sign-in')
    await opened.signIn('viewer')
    await page.getByText('Assigned to node-4').waitFor()
    assert.equal(page.url(), `${server.base}/ui/`)
    assert.equal(
      await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])'),
      '[{},{}]',
    )
    assert.deepEqual(await opened.context.cookies(), [])
    await page.reload()
    await page.getByLabel('Bearer token').waitFor()
    opened.assertNoProblems()
  })

  test('a wrong token is refused with a reason', async () => {
    await using opened = await browser.open(server.base)
    opened.allowProblems(/status of 401/)
    const { page } = opened
    await page.getByLabel('Bearer token').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('does not accept this token').waitFor()
    await opened.screenshot('sign-in-401')
    opened.assertNoProblems()
  })

  test('a kept token survives a reload of the tab, until the user signs out', async () => {
    await using opened = await browser.open(server.base)
    opened.allowProblems(/status of 401/)
    const { page } = opened
    await page.getByLabel('Keep it in this tab').check()
    await opened.signIn('viewer')
    await page.reload()
    await page.getByText('Assigned to node-4').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Bearer token').waitFor()
    await page.reload()
    await page.getByLabel('Bearer token').waitFor()
    opened.assertNoProblems()
  })
})
