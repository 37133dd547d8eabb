/** The view of top sources. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TestBrowser, type TestPage } from '../../support/browser.ts'
import { type PageEvent, PageServer } from '../../support/page-server.ts'

/** kubelet has most occurrences, the scheduler most events, an unnamed controller a few. */
function story(): readonly PageEvent[] {
  const events: PageEvent[] = []
  for (let index = 0; index < 12; index++) {
    const minutesAgo = 55 - index * 4
    events.push(
      {
        minutesAgo,
        type: 'Warning',
        reason: 'BackOff',
        object: `Pod/web-${index % 3}`,
        note: 'Back-off restarting failed container',
        count: 10 + index,
        overMinutes: 3,
      },
      { minutesAgo, reason: 'Pulled', object: `Pod/web-${index}`, note: 'Image is there' },
      {
        minutesAgo,
        reason: 'Scheduled',
        object: `Pod/api-${index}`,
        namespace: 'pay',
        note: 'Assigned to node-4',
        controller: 'default-scheduler',
      },
    )
  }
  events.push({
    minutesAgo: 2,
    reason: 'FailedMount',
    type: 'Warning',
    object: 'Pod/db-0',
    note: '<b>no</b> secret "db"',
    namespace: 'pay',
    controller: 'attachdetach-controller',
  })
  return events
}

describe('page: top sources', () => {
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    await server.write(story())
  })
  after(async () => {
    await browser?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
  })

  const open = async (user: string, more: object = {}): Promise<TestPage> => {
    const opened = await browser.open(server.base, { path: '?view=sources', token: user, ...more })
    return opened
  }
  const panelOf = ({ page }: TestPage, name: string) => page.getByRole('region', { name })

  test('shows the top of controllers, namespaces, reasons and objects', async () => {
    await using opened = await open('viewer')
    const first = panelOf(opened, 'Controllers').getByRole('listitem').first()
    await first.getByRole('link', { name: 'kubelet' }).waitFor()
    // 12 of BackOff with 10 to 21 occurrences each, 12 of Pulled.
    await first.getByText('198').waitFor()
    await first.getByText('94 % Warnings').waitFor()
    await first.getByText('24 events').waitFor()
    await first.getByText('12 objects').waitFor()
    await first.getByText(/\d+\/min now/).waitFor()
    const reason = panelOf(opened, 'Reasons').getByRole('listitem').first()
    await reason.getByText('last note').click()
    await reason.getByText('Back-off restarting failed container').waitFor()
    await panelOf(opened, 'Namespaces').getByRole('link', { name: 'pay' }).waitFor()
    await panelOf(opened, 'Reasons').getByRole('link', { name: 'FailedMount' }).waitFor()
    const object = panelOf(opened, 'Objects').getByRole('listitem').first()
    await object.getByText('Pod/shop/web-2').waitFor()
    assert.equal(await object.getByText('/min now').count(), 0)
    await panelOf(opened, 'Objects')
      .getByRole('img', { name: /^Most at .*\d\d:\d\d: \d+$/ })
      .first()
      .waitFor()
    assert.equal(await opened.page.getByText('Users who write events').count(), 0)
    await opened.assertAccessible()
    await opened.screenshot('sources')
  })

  test('a name filters, an object opens its story', async () => {
    await using opened = await open('viewer')
    const { page } = opened
    const link = panelOf(opened, 'Controllers').getByRole('link', { name: 'default-scheduler' })
    assert.equal(await link.getAttribute('href'), '?controller=default-scheduler')
    await link.click()
    await page.getByText('Assigned to node-4').first().waitFor()
    assert.equal(await page.getByText('Image is there').count(), 0)
    await page.goBack()
    await panelOf(opened, 'Objects').getByRole('link', { name: 'Pod/shop/web-2' }).click()
    await page.waitForURL(/view=object/)
    assert.equal(new URL(page.url()).searchParams.get('about'), 'Pod/shop/web-2')
  })

  test('who writes most now is another order, and part of the URL', async () => {
    await using opened = await open('viewer')
    const { page } = opened
    await page.getByRole('button', { name: 'Writing most now' }).click()
    await page.waitForURL(/order=rate/)
    const rates = panelOf(opened, 'Controllers').getByText(/\/min now/)
    await rates.first().waitFor()
    const shown = await rates.allTextContents()
    const numbers = shown.map((text) => Number.parseInt(text.replaceAll(',', ''), 10))
    assert.deepEqual(
      numbers,
      numbers.toSorted((one, other) => other - one),
    )
    await page.getByRole('button', { name: 'Most in this range' }).click()
    await page.waitForURL((url) => !url.search.includes('order'))
  })

  test('in one namespace there are no rates', async () => {
    await using opened = await open('sam', { path: '?view=sources&namespace=shop' })
    opened.allowProblems(/status of 403/)
    const { page } = opened
    await panelOf(opened, 'Reasons').getByRole('link', { name: 'BackOff' }).waitFor()
    assert.equal(await page.getByText('/min now').count(), 0)
    assert.equal(await page.getByRole('button', { name: 'Writing most now' }).isDisabled(), true)
    await page.getByText('Rates are available only for all namespaces together').waitFor()
  })

  test('who may see users sees who writes', async () => {
    await using opened = await open('root', { theme: 'dark' })
    const users = panelOf(opened, 'Users who write events')
    await users.getByText('root').waitFor()
    await users.getByText(/\/min now/).waitFor()
    await opened.assertAccessible()
    await opened.screenshot('sources-dark')
  })

  test('on a small screen', async () => {
    await using opened = await open('viewer', { width: 360, height: 1_400 })
    await panelOf(opened, 'Objects').getByRole('link').first().waitFor()
    await panelOf(opened, 'Objects').getByRole('img').first().waitFor()
    await opened.assertAccessible()
    await opened.screenshot('sources-narrow')
  })

  test('who may see nothing is told why; a range without events says so', async () => {
    await using refused = await open('nobody')
    refused.allowProblems(/status of 403/)
    await refused.page.getByText('You do not have permission').waitFor()
    assert.equal(await refused.page.getByRole('alert').count(), 1)
    await refused.assertAccessible()
    await refused.screenshot('sources-403')
    refused.assertNoProblems()
    await using empty = await open('viewer', { path: '?view=sources&reason=None' })
    await panelOf(empty, 'Objects').getByText('No events in this range').waitFor()
    await empty.screenshot('sources-empty')
  })
})
