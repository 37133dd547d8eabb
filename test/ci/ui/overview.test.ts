/** The overview, in a real browser: list, filters, range, histogram, keys. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { type TestPage, type Visit, waitForValue } from '../../support/browser.ts'
import { NIGHT } from '../../support/page-night.ts'
import { withPage } from '../../support/page-server.ts'

describe('page: overview', () => {
  const ui = withPage(NIGHT)

  const rowsOf = (page: Page): Locator =>
    page.getByRole('list', { name: 'Events' }).getByRole('listitem')

  async function open(visit: Visit = {}): Promise<TestPage> {
    const opened = await ui.browser.open(ui.server.base, { token: 'viewer', ...visit })
    await rowsOf(opened.page).first().waitFor()
    await opened.page.locator('.histogram canvas').waitFor()
    return opened
  }

  const readout = (page: Page): Promise<string | null> =>
    page.locator('.histogram-readout').textContent()

  test('events are listed newest first; one opens, and its values filter', async () => {
    await using opened = await open()
    const { page } = opened
    const rows = rowsOf(page)
    assert.match((await rows.first().textContent()) ?? '', /Liveness probe failed/)
    const backOff = rows.filter({ hasText: 'Back-off restarting' })
    assert.match((await backOff.textContent()) ?? '', /×42 over 18m.*Warning.*BackOff/)
    await backOff.getByRole('button', { name: 'Back-off restarting' }).click()
    await backOff.getByText('42 over 18m', { exact: true }).waitFor()
    await backOff.getByText('app=checkout').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-open')
    await backOff.getByRole('button', { name: 'kubelet' }).click()
    await page.waitForURL(/controller=kubelet/)
    await rows.filter({ hasText: 'Scheduled' }).first().waitFor({ state: 'detached' })
    await waitForValue(page.getByLabel('Controller', { exact: true }), 'kubelet')
  })

  test('the list and the histogram understand every filter', async () => {
    const filters = [
      'namespace=shop',
      'kind=Pod',
      'object=checkout-5d8f7c9b4-x2lqz',
      'workload=Deployment/checkout',
      'node=node-3',
      'reason=BackOff',
      'type=Warning',
      'controller=kubelet',
      'text=back-off',
    ]
    for (const path of [...filters, filters.join('&')]) {
      await using opened = await open({ path: `?${path}` })
      assert.match((await readout(opened.page)) ?? '', /[1-9]\d* Warnings/, path)
      await rowsOf(opened.page).getByText('Back-off restarting').waitFor()
    }
  })

  test('incidents say what is going on; one filters, is copied, and is left again', async () => {
    await using opened = await open()
    const { page } = opened
    const incidents = page.getByRole('table', { name: 'Incidents' }).getByRole('row')
    const backOff = incidents.filter({ hasText: 'BackOff' })
    await backOff.waitFor()
    const [, ...lines] = await incidents.allTextContents()
    const types = lines.map((line) => /^(Warning|Normal)/.exec(line)?.[0])
    assert.deepEqual(new Set(types.slice(0, 4)), new Set(['Warning']))
    assert.deepEqual(new Set(types.slice(4)), new Set(['Normal']))
    assert.match(
      (await backOff.textContent()) ?? '',
      /shopDeployment\/checkoutBackOff421\d+m4m.*Back-off restarting/,
    )
    await backOff.getByRole('link', { name: 'Deployment/checkout' }).press('Enter')
    await page.waitForURL(/\?namespace=shop&workload=Deployment%2Fcheckout&reason=BackOff&pattern=/)
    await opened.settle()
    assert.equal(await rowsOf(page).count(), 1)
    assert.equal(await incidents.count(), 2)
    const copied = await opened.copied('kubectl')
    const pattern = new URL(page.url()).searchParams.get('pattern')
    const selector = `workload=Deployment/checkout,reason=BackOff,pattern=${pattern},since=`
    assert.ok(copied.includes(`-n shop --field-selector ${selector}`), copied)
    await waitForValue(page.getByLabel('Workload', { exact: true }), 'Deployment/checkout')
    await page.getByRole('button', { name: 'Remove the filter Pattern' }).click()
    await page.getByRole('button', { name: 'Remove the filter Workload' }).click()
    await page.waitForURL(/\?namespace=shop&reason=BackOff$/)
  })

  test('events that were seen again after the range are said to be, not missing', async () => {
    await using opened = await open()
    const [from, to] = [20, 10].map((minutes) => new Date(Date.now() - minutes * 60_000))
    await opened.go(`?reason=BackOff&from=${from?.toISOString()}&to=${to?.toISOString()}`)
    const { page } = opened
    await page.getByText('No event was last seen in this range').waitFor()
    await page.getByRole('row').getByText('≈').waitFor()
    await opened.assertAccessible()
  })

  test('an object leads to its view, also in a new tab', async () => {
    await using opened = await open()
    const { page } = opened
    const link = page.getByRole('link', { name: 'Pod/cart-0' }).first()
    assert.equal(await link.getAttribute('href'), '?view=object&about=Pod%2Fshop%2Fcart-0')
    await link.click()
    await page.waitForURL(/view=object/)
  })

  test('filters are in the URL; back and forward follow them; each is removed with a click', async () => {
    await using opened = await open()
    const { page } = opened
    const rows = rowsOf(page)
    await page.getByLabel('Namespace').fill('batch')
    await page.getByLabel('Namespace').press('Enter')
    await page.waitForURL(/\?namespace=batch$/)
    await rows.filter({ hasText: 'cart' }).first().waitFor({ state: 'detached' })
    await rows.first().waitFor()
    assert.equal(await rows.count(), 1)
    await page.getByLabel('Text', { exact: true }).pressSequentially('insufficient', { delay: 20 })
    await page.waitForURL(/text=insufficient/)
    await page.goBack()
    await page.waitForURL(/\?namespace=batch$/)
    await waitForValue(page.getByLabel('Text', { exact: true }), '')
    await page.goBack()
    await rows.filter({ hasText: 'cart' }).first().waitFor()
    await waitForValue(page.getByLabel('Namespace'), '')
    await page.goForward()
    await page.goForward()
    await page.waitForURL(/text=insufficient/)
    await waitForValue(page.getByLabel('Text', { exact: true }), 'insufficient')
    await page.getByRole('button', { name: 'Remove the filter Namespace' }).click()
    await page.waitForURL(/\?text=insufficient$/)
    await page.getByRole('button', { name: 'Clear all' }).click()
    await page.waitForURL(`${ui.server.base}/ui/`)
  })

  test('filters suggest values that there are', async () => {
    await using opened = await open()
    const { page } = opened
    const suggested = async (label: string): Promise<readonly (string | null)[]> => {
      const input = page.getByLabel(label, { exact: true })
      await input.press('ArrowDown')
      const options = page.locator(`.filter:has(input[aria-label="${label}"]) option`)
      await options.first().waitFor({ state: 'attached' })
      return options.evaluateAll((all) => all.map((one) => one.getAttribute('value')))
    }
    assert.deepEqual(await suggested('Namespace'), ['batch', 'default', 'shop'])
    assert.ok((await suggested('Reason')).includes('FailedScheduling'))
    assert.ok((await suggested('Workload')).includes('Deployment/checkout'))
    assert.ok((await suggested('Kind')).includes('Deployment'))
    assert.ok((await suggested('Controller')).includes('default-scheduler'))
  })

  test('what is typed on while a filter is applied stays, and Escape applies nothing', async () => {
    await using opened = await open()
    const { page } = opened
    const text = page.getByLabel('Text', { exact: true })
    await text.pressSequentially('probe ')
    await page.waitForURL(/text=probe$/)
    await rowsOf(page).filter({ hasText: 'Back-off' }).first().waitFor({ state: 'detached' })
    await text.pressSequentially('failed')
    await waitForValue(text, 'probe failed')
    await page.waitForURL(/text=probe\+failed$/)
    await opened.settle()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    const namespace = page.getByLabel('Namespace')
    await namespace.focus()
    await page.getByLabel('Reason').focus()
    await page.getByLabel('Controller', { exact: true }).focus()
    await namespace.fill('sh')
    await namespace.press('Escape')
    await waitForValue(namespace, '')
    assert.equal(new URL(page.url()).search, '?text=probe+failed')
    assert.deepEqual(
      asked.filter((url) => url.includes('eventsummaries')),
      [],
      'the focus alone asks for nothing',
    )
  })

  test('Warnings are counted, and shown alone', async () => {
    await using opened = await open()
    const { page } = opened
    // 42 + 12 + 7 + 1
    await page.getByRole('button', { name: 'Warnings (62)' }).click()
    await page.waitForURL(/type=Warning/)
    await rowsOf(page).filter({ hasText: 'Normal' }).first().waitFor({ state: 'detached' })
    assert.match((await readout(page)) ?? '', /62 Warnings, 0 Normal/)
    await page.keyboard.press('w')
    await page.waitForURL(`${ui.server.base}/ui/`)
  })

  test('a range is chosen, and two times are typed', async () => {
    await using opened = await open()
    const { page } = opened
    await page.getByRole('button', { name: '6h' }).click()
    await page.waitForURL(/range=6h/)
    await page.getByRole('button', { name: 'Custom' }).click()
    const form = page.getByRole('form', { name: 'Custom time range' })
    const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
    await form.getByLabel('From').fill(`${day}T01:00:00`)
    await form.getByLabel('to').fill(`${day}T01:30:00`)
    await form.getByText(`in UTC ${day}T01:00:00Z to ${day}T01:30:00Z`).waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-custom-range')
    await form.getByRole('button', { name: 'Apply' }).click()
    await page.waitForURL(/from=.*to=/)
    await page.getByText('No events in this range').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-empty')
  })

  test('without history, neither ranges of weeks nor history are offered; links to them work', async () => {
    await using opened = await open()
    const { page } = opened
    await page
      .locator('footer')
      .getByText(/^Oldest event \S+ ago$/)
      .waitFor()
    const ranges = page.getByRole('group', { name: 'Time range' }).getByRole('button')
    const offered = ['15m', '1h', '6h', '24h', '7d', 'Custom']
    assert.deepEqual(await ranges.allTextContents(), offered)
    assert.equal(
      await page
        .locator('footer')
        .getByText(/history/i)
        .count(),
      0,
    )
    await opened.go('?range=30d')
    await rowsOf(page).first().waitFor()
    assert.deepEqual(await ranges.allTextContents(), offered.toSpliced(5, 0, '30d'))
    assert.equal(await page.getByRole('button', { name: '30d', pressed: true }).count(), 1)
    assert.match((await readout(page)) ?? '', /a bar is 6 h$/)
    assert.equal(await page.getByText(/history/i).count(), 0)
    await opened.go('?view=object&about=Pod/shop/cart-0&range=30d&history=all')
    await page.getByRole('list', { name: 'Events, by when they began' }).waitFor()
    assert.equal(await page.getByText(/history/i).count(), 0)
  })

  test('a brush zooms in, a double click and a button zoom out', async () => {
    await using opened = await open()
    const { page } = opened
    const chart = page.locator('.histogram .u-over')
    const box = await chart.boundingBox()
    assert.ok(box)
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.75, box.y + 50, { steps: 5 })
    await opened.screenshot('overview-brush')
    await page.mouse.up()
    await page.waitForURL(/from=.*to=/)
    const parameters = new URL(page.url()).searchParams
    const minutes =
      (Date.parse(parameters.get('to') ?? '') - Date.parse(parameters.get('from') ?? '')) / 60_000
    assert.ok(minutes > 14 && minutes < 17, String(minutes))
    await page.getByRole('button', { name: 'Zoom out' }).waitFor()
    await chart.dblclick()
    await page.waitForURL(`${ui.server.base}/ui/`)
  })

  test('zooming out leads to a range around the one that is shown', async () => {
    await using opened = await open()
    const { page } = opened
    const slider = page.getByRole('slider', { name: 'Time in the histogram' })
    await slider.focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('Enter')
    await page.waitForURL(/from=/)
    await opened.go('?from=2026-01-05T00:00:00Z&to=2026-01-05T01:00:00Z')
    await page.getByRole('button', { name: 'Zoom out' }).click()
    await page.waitForURL(/from=2026-01-04T23/)
    assert.match(page.url(), /to=2026-01-05T01%3A30/)
  })

  test('keys move through the histogram, say what is there, and zoom', async () => {
    await using opened = await open({ path: '?range=15m' })
    const { page } = opened
    const slider = page.getByRole('slider', { name: 'Time in the histogram' })
    await slider.focus()
    await page.keyboard.press('Home')
    const first = await slider.getAttribute('aria-valuetext')
    await page.keyboard.press('ArrowRight')
    const second = await slider.getAttribute('aria-valuetext')
    assert.notEqual(first, second)
    assert.match(second ?? '', /to \d\d:\d\d:\d\d: \d+ Warnings?, \d+ Normal/)
    assert.equal(await readout(page), second)
    await page.keyboard.press('Shift+ArrowRight')
    await page.keyboard.press('Shift+ArrowRight')
    await page.keyboard.press('Enter')
    await page.waitForURL(/from=.*to=/)
    await page.getByRole('button', { name: 'Zoom out' }).click()
    await page.waitForURL(/range=15m/)
    await page.getByRole('button', { name: 'Table' }).click()
    await page.getByRole('columnheader', { name: 'Warnings' }).waitFor()
    await opened.assertAccessible()
  })

  test('keys move through the list, search, refresh and explain themselves', async () => {
    await using opened = await open()
    const { page } = opened
    const rows = rowsOf(page)
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('k')
    const second = rows.nth(1)
    assert.equal(
      await page.evaluate(
        'document.activeElement.closest("li") === document.querySelectorAll(".event")[1]',
      ),
      true,
    )
    await page.keyboard.press('o')
    await second.getByText('Last seen').waitFor()
    await page.keyboard.press('Enter')
    await second.getByText('Last seen').waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    await page.locator('input[aria-label="Text"]:focus').waitFor()
    // Typed into an input they are letters.
    await page.keyboard.type('w?')
    await waitForValue(page.getByLabel('Text', { exact: true }), 'w?')
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    const dialog = page.getByRole('dialog', { name: 'Keys' })
    await dialog.getByText('Show only Warnings, or all').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-keys')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    const asked = page.waitForRequest(/api\/v1\/events/)
    await page.keyboard.press('r')
    await asked
  })

  test('a range that ends now is loaded again, but not under the eyes of a reader', async () => {
    await using opened = await open()
    const { page } = opened
    await page.clock.install()
    // Its timers are those of the clock from here on.
    await page.getByRole('button', { name: '15m' }).click()
    await page.waitForURL(/range=15m/)
    let asked = 0
    page.on('request', (request) => {
      if (request.url().includes('/api/v1/events')) asked++
    })
    const refreshed = page.waitForRequest(/api\/v1\/events/)
    await page.clock.runFor(40_000)
    await refreshed
    const row = rowsOf(page).first()
    await row.getByRole('button', { expanded: false }).click()
    await row.getByText('Last seen').waitFor()
    asked = 0
    await page.clock.runFor(120_000)
    assert.equal(asked, 0)
  })

  for (const theme of ['light', 'dark'] as const) {
    test(`looks ${theme}`, async () => {
      await using opened = await open({ theme })
      await opened.assertAccessible()
      await opened.screenshot(`overview-${theme}`)
    })
  }

  test('has room on a narrow screen, where the filters are folded', async () => {
    await using opened = await open({ width: 360, height: 740, path: '?namespace=shop' })
    const { page } = opened
    await opened.assertAccessible()
    await opened.screenshot('overview-narrow')
    await page.getByRole('button', { name: 'Filters (1)' }).click()
    await page.getByLabel('Reason', { exact: true }).waitFor()
    await opened.assertAccessible()
    await opened.screenshot('overview-narrow-filters')
  })
})
