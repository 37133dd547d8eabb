/** What the overview says when events cannot be shown, in a real browser. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NIGHT } from '../../support/page-night.ts'
import { withPage } from '../../support/page-server.ts'

describe('page: overview in trouble', () => {
  const ui = withPage(NIGHT)

  test('a user of one namespace is told to choose it', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'sam' })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    const alert = page.getByRole('alert')
    await alert.getByText('You do not have permission for this').waitFor()
    await alert.getByText('Choose a namespace that you may read').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-403')
    await page.getByLabel('Namespace').fill('shop')
    await page.getByLabel('Namespace').press('Enter')
    await page.getByText('Liveness probe failed').first().waitFor()
    assert.equal(await alert.count(), 0)
  })

  test('a user without any permission is told so, in a namespace too', async () => {
    await using opened = await ui.browser.open(ui.server.base, {
      token: 'nobody',
      path: '?namespace=shop',
    })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    await page.getByRole('alert').getByText('Choose another namespace or cluster').waitFor()
    await opened.assertAccessible()
  })

  test('what the server refuses is explained in its words', async () => {
    // The page itself sends nothing that the server does not understand.
    await using opened = await ui.browser.open(ui.server.base, { token: 'viewer' })
    opened.allowProblems(/status of 40[01]/)
    const { page } = opened
    await page.getByText('Liveness probe failed').first().waitFor()
    await page.route('**/events?*', (route) => {
      const url = route.request().url().replace('fieldSelector=', 'fieldSelector=nonsense%3D1%2C')
      return route.continue({ url })
    })
    await page.getByRole('button', { name: '6h' }).click()
    const alert = page.getByRole('alert')
    await alert.getByText('The server does not understand this filter').waitFor()
    await opened.assertAccessible()
    await alert.getByText('field label not supported: nonsense').waitFor()
    await opened.screenshot('overview-400')
    await page.unroute('**/events?*')
    await page.getByRole('button', { name: '1h', exact: true }).click()
    await page.getByText('Liveness probe failed').first().waitFor()
    assert.equal(await alert.count(), 0)
  })

  test('an error stands alone: it is not said that no events match', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'viewer' })
    opened.allowProblems(/status of 40[01]/)
    const { page } = opened
    await page.getByText('Liveness probe failed').first().waitFor()
    await page.route('**/eventhistograms*', (route) => route.fulfill({ status: 400, body: 'no' }))
    await page.getByLabel('Reason').fill('NoSuchReason')
    await page.getByLabel('Reason').press('Enter')
    await page.getByRole('alert').waitFor()
    await page.getByRole('status').getByText('0 events are listed').waitFor()
    assert.equal(await page.getByText('No events match the filters').count(), 0)
    await page.unroute('**/eventhistograms*')
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByText('No events match the filters').waitFor()
  })

  test('who may read events only sees them, without counts', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'reader' })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    await page.getByText('Liveness probe failed').first().waitFor()
    await page.getByText('There is no histogram').waitFor()
    await page.getByText('There are no incidents').waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
    await opened.assertAccessible()
    await opened.screenshot('overview-reader')
  })

  test('while etcd is down the events are those in memory, and the page recovers by itself', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'viewer' })
    opened.allowProblems(/status of (401|503|504|500)/)
    const { page } = opened
    await page.getByText('Liveness probe failed').first().waitFor()
    await ui.server.etcd.member(0).kill()
    await page.getByRole('button', { name: 'Refresh' }).click()
    const note = page.getByText('etcd does not respond: this is what the replica has in memory')
    await note.waitFor({ timeout: 40_000 })
    assert.equal(await page.getByRole('alert').count(), 0)
    assert.equal(await page.locator('.event-note', { hasText: 'Liveness probe failed' }).count(), 1)
    await opened.assertAccessible()
    await opened.screenshot('overview-etcd-down')
    {
      await using late = await ui.browser.open(ui.server.base, {
        token: 'viewer',
        path: '?type=Warning',
      })
      late.allowProblems(/status of (401|503|504|500)/)
      await late.page.getByText('Liveness probe failed').first().waitFor({ timeout: 40_000 })
      await late.page.locator('.histogram canvas').waitFor()
      assert.match((await late.page.locator('.histogram-readout').textContent()) ?? '', /Warnings/)
      for (const view of ['lanes', 'sources', 'object&about=Pod/shop/cart-0']) {
        await late.go(`?view=${view}`)
        await late.page.getByText('this is what the replica has in memory').waitFor()
      }
    }
    await ui.server.etcd.member(0).start()
    await note.waitFor({ state: 'detached', timeout: 60_000 })
    await page.getByText('Liveness probe failed').first().waitFor()
  })

  test('events of other filters are not shown when the server does not respond', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'viewer' })
    opened.allowProblems(/ERR_INTERNET_DISCONNECTED/)
    const { page } = opened
    await page.getByText('Liveness probe failed').first().waitFor()
    await opened.context.setOffline(true)
    await page.getByLabel('Namespace').fill('batch')
    await page.getByLabel('Namespace').press('Enter')
    await page.getByRole('alert').getByText('No response').waitFor()
    assert.equal(await page.getByText('Liveness probe failed').count(), 0)
    assert.equal(await page.getByText('Below is what was loaded').count(), 0)
    assert.match((await page.locator('.histogram-readout').textContent()) ?? '', /No counts/)
    await opened.context.setOffline(false)
    await page.getByRole('list', { name: 'Events' }).waitFor({ timeout: 40_000 })
  })

  test('a server that does not respond is asked again', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'viewer' })
    opened.allowProblems(/ERR_INTERNET_DISCONNECTED/)
    const { page } = opened
    await page.getByText('Liveness probe failed').first().waitFor()
    await opened.context.setOffline(true)
    await page.keyboard.press('r')
    const alert = page.getByRole('alert')
    await alert.getByText('No response').waitFor()
    await page.getByText('Below is what was loaded at').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-no-response')
    await opened.context.setOffline(false)
    await alert.waitFor({ state: 'detached', timeout: 20_000 })
  })
})
