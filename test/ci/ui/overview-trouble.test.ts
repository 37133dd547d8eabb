/** What the overview says when events cannot be shown, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TestBrowser } from '../../support/browser.ts'
import { NIGHT } from '../../support/page-night.ts'
import { PageServer } from '../../support/page-server.ts'

describe('page: overview in trouble', () => {
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

  test('a user of one namespace is told to choose it', async () => {
    await using opened = await browser.open(server.base, { token: 'sam' })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    const alert = page.getByRole('alert')
    await alert.getByText('You do not have the permission for this').waitFor()
    await alert.getByText('Choose a namespace that you may read').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-403')
    await page.getByLabel('Namespace').fill('shop')
    await page.getByLabel('Namespace').press('Enter')
    await page.getByText('Liveness probe failed').waitFor()
    assert.equal(await alert.count(), 0)
    opened.assertNoProblems()
  })

  test('a user without any permission is told so, in a namespace too', async () => {
    await using opened = await browser.open(server.base, {
      token: 'nobody',
      path: '?namespace=shop',
    })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    await page.getByRole('alert').getByText('Choose another namespace or cluster').waitFor()
    await opened.assertAccessible()
    opened.assertNoProblems()
  })

  test('what the server refuses is explained in its words', async () => {
    // The server's years have four digits.
    const path = '?from=2026-01-01T00:00:00Z&to=%2B200000-01-01T00:00:00Z'
    await using opened = await browser.open(server.base, { token: 'viewer', path })
    opened.allowProblems(/status of 40[01]/)
    const { page } = opened
    const alert = page.getByRole('alert')
    await alert.getByText('The server does not understand this filter').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-400')
    await page.getByRole('button', { name: '1h' }).click()
    await page.getByText('Liveness probe failed').waitFor()
    assert.equal(await alert.count(), 0)
    opened.assertNoProblems()
  })

  test('while etcd is down the events stay, and the page recovers by itself', async () => {
    await using opened = await browser.open(server.base, { token: 'viewer' })
    opened.allowProblems(/status of (401|503|504|500)/)
    const { page } = opened
    await page.getByText('Liveness probe failed').waitFor()
    await server.etcd.member(0).kill()
    await page.getByRole('button', { name: 'Refresh' }).click()
    const alert = page.getByRole('alert')
    await alert.getByText('The server cannot respond now').waitFor({ timeout: 40_000 })
    await page.getByText('Below is what was loaded at').waitFor()
    assert.equal(await page.getByText('Liveness probe failed').count(), 1)
    await opened.assertAccessible()
    await opened.screenshot('overview-etcd-down')
    await server.etcd.member(0).start()
    await alert.waitFor({ state: 'detached', timeout: 60_000 })
    await page.getByText('Liveness probe failed').waitFor()
    opened.assertNoProblems()
  })

  test('a server that does not respond is asked again', async () => {
    await using opened = await browser.open(server.base, { token: 'viewer' })
    opened.allowProblems(/status of 401/, /ERR_INTERNET_DISCONNECTED/)
    const { page } = opened
    await page.getByText('Liveness probe failed').waitFor()
    await opened.context.setOffline(true)
    await page.keyboard.press('r')
    const alert = page.getByRole('alert')
    await alert.getByText('No response').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-no-response')
    await opened.context.setOffline(false)
    await alert.waitFor({ state: 'detached', timeout: 20_000 })
    opened.assertNoProblems()
  })
})
