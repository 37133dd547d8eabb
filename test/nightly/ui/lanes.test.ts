/** The lanes of objects, in a real browser. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestPage } from '../../support/browser.ts'
import { eventually } from '../../support/eventually.ts'
import { type PageEvent, withPage } from '../../support/page-server.ts'

const STORY: readonly PageEvent[] = [
  {
    minutesAgo: 5,
    type: 'Warning',
    reason: 'BackOff',
    object: 'Pod/web-0',
    note: 'Back-off restarting failed container',
    count: 52,
    overMinutes: 30,
  },
  { minutesAgo: 50, reason: 'Scheduled', object: 'Pod/web-0', note: 'Assigned to node-4' },
  { minutesAgo: 49, reason: 'Pulled', object: 'Pod/web-0', note: 'Pulled the image' },
  { minutesAgo: 1, reason: 'ScalingReplicaSet', object: 'Deployment/web', note: 'Scaled up to 3' },
  ...Array.from({ length: 12 }, (_, index) => ({
    minutesAgo: 10 + index,
    reason: 'Synced',
    object: `Job/nightly-report-${index}`,
    note: 'Synchronised',
    namespace: 'batch',
    count: index === 3 ? 9 : 1,
    overMinutes: index === 3 ? 20 : 0,
  })),
  {
    minutesAgo: 20,
    type: 'Warning',
    reason: 'NodeNotReady',
    object: 'Node/node-4',
    namespace: 'default',
    note: 'Node node-4 status is now: NodeNotReady',
    members: { involvedObject: { kind: 'Node', name: 'node-4' } },
  },
]

describe('page: lanes', () => {
  const ui = withPage(STORY)

  async function open(path = '', visit: object = {}): Promise<TestPage> {
    const opened = await ui.browser.open(ui.server.base, {
      path: `?view=lanes${path}`,
      token: 'viewer',
      ...visit,
    })
    return opened
  }

  const names = (opened: TestPage): Promise<readonly string[]> =>
    opened.page.locator('.lane-name').allTextContents()

  test('each object has a lane with a summary, sorted as the user chooses', async () => {
    await using opened = await open()
    const { page } = opened
    await page.getByText('17 events of 15 objects').waitFor()
    assert.deepEqual((await names(opened)).slice(0, 3), ['web', 'web-0', 'nightly-report-0'])
    const item = page.getByRole('listitem').filter({ hasText: 'web-0' })
    assert.match((await item.textContent()) ?? '', /3 events, 1 Warning, last BackOff at 20/)
    assert.equal(await item.getAttribute('aria-setsize'), '15')
    await page.getByLabel('Sort by').selectOption('most Warnings')
    assert.deepEqual((await names(opened)).slice(0, 3), ['web-0', 'node-4', 'web'])
    assert.match(page.url(), /sort=warnings/)
    await page.getByLabel('Sort by').selectOption('name')
    assert.deepEqual((await names(opened)).slice(0, 2), ['node-4', 'nightly-report-0'])
    await opened.assertAccessible()
  })

  test('a pointer shows what a mark stands for, and a click opens the object', async () => {
    await using opened = await open()
    const { page } = opened
    const lane = page.getByRole('listitem').filter({ hasText: 'web-0' })
    await page.getByText('17 events of 15 objects').waitFor()
    await page.getByText('Ready', { exact: true }).waitFor()
    const box = await lane.boundingBox()
    const label = await lane.locator('.lane-label').boundingBox()
    assert.ok(box !== null && label !== null)
    // Somewhere in the bar from 35 to 5 minutes ago.
    const x = box.x + label.width + ((box.width - label.width) * 40) / 60
    await page.mouse.move(x, box.y + box.height / 2)
    const tooltip = page.getByRole('tooltip')
    await tooltip.getByText('Back-off restarting failed container').waitFor()
    assert.match((await tooltip.textContent()) ?? '', /Warning BackOff ×52 over 30m.*Last seen.*Z/s)
    await opened.screenshot('lanes')
    await page.mouse.move(box.x + label.width + 2, box.y + box.height / 2)
    await tooltip.waitFor({ state: 'detached' })
    await page.mouse.click(x, box.y + box.height / 2)
    await page.getByRole('heading', { name: 'Pod/shop/web-0' }).waitFor()
    await page.goBack()
    await page.getByText('17 events of 15 objects').waitFor()
  })

  test('keys move between lanes and events, which are announced', async () => {
    await using opened = await open()
    const { page } = opened
    await page.getByText('17 events of 15 objects').waitFor()
    await page.getByRole('link', { name: /Deployment.*web/ }).focus()
    await page.keyboard.press('ArrowDown')
    const focused = page.locator('.lane a:focus')
    assert.match((await focused.textContent()) ?? '', /web-0/)
    await page.keyboard.press('ArrowLeft')
    await page.getByRole('tooltip').getByText('BackOff').waitFor()
    const announcement = page.locator('.announcement')
    await announcement.getByText('Warning BackOff, 52 times over 30m').waitFor()
    assert.match((await announcement.textContent()) ?? '', /event 3 of 3: .*Back-off restarting/)
    await page.keyboard.press('ArrowLeft')
    await announcement.getByText('Normal Pulled').waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await page.getByRole('tooltip').count(), 0)
    await page.keyboard.press('End')
    assert.match((await focused.textContent()) ?? '', /Scheduled|nightly|node-4/)
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Pod/shop/web-0' }).waitFor()
  })

  test('drawing along the axis zooms, and so do the buttons', async () => {
    await using opened = await open()
    const { page } = opened
    await page.getByText('17 events of 15 objects').waitFor()
    const axis = await page.locator('.lanes-axis').boundingBox()
    assert.ok(axis !== null)
    const y = axis.y + axis.height / 2
    await page.mouse.move(axis.x + (axis.width * 52) / 60, y)
    await page.mouse.down()
    await page.mouse.move(axis.x + axis.width - 2, y, { steps: 4 })
    await opened.screenshot('lanes-brush')
    await page.mouse.up()
    await page.getByText('2 events of 2 objects').waitFor()
    const search = new URL(page.url()).searchParams
    const lengthMs = Date.parse(search.get('to') ?? '') - Date.parse(search.get('from') ?? '')
    assert.ok(Math.abs(lengthMs - 8 * 60_000) < 30_000, String(lengthMs))
    await page.getByRole('button', { name: 'Zoom out' }).click()
    await page.getByText(/[3-9] events of/).waitFor()
    const from = page.url()
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await page.waitForURL((url) => url.href !== from)
    await page.goBack()
    await page.getByText(/[3-9] events of/).waitFor()
  })

  test('is usable in the dark, on a telephone and without events', async () => {
    for (const [name, path, visit] of [
      ['lanes-dark', '', { theme: 'dark' }],
      ['lanes-360', '', { width: 360, height: 640 }],
      ['lanes-empty', '&namespace=nothing', {}],
    ] as const) {
      await using opened = await open(path, visit)
      await opened.page.getByText(path === '' ? '17 events' : 'No events in this range').waitFor()
      await opened.assertAccessible()
      await opened.screenshot(name)
    }
  })

  test('follows the theme', async () => {
    await using opened = await open()
    const { page } = opened
    await page.getByText('17 events of 15 objects').waitFor()
    const drawn = (): Promise<unknown> =>
      page.evaluate(`document.querySelector('.lanes-canvas').toDataURL()`)
    const light = await drawn()
    await page.emulateMedia({ colorScheme: 'dark' })
    await eventually('other colours', async () => (await drawn()) !== light)
    await page.emulateMedia({ colorScheme: 'light' })
    await eventually('the colours from before', async () => (await drawn()) === light)
    await page.getByRole('button', { name: 'Theme: system' }).click()
    await page.getByRole('button', { name: 'Theme: light' }).click()
    await eventually('other colours', async () => (await drawn()) !== light)
  })

  test('says who may not read, and that the server is away', async () => {
    await using opened = await ui.browser.open(ui.server.base, {
      path: '?view=lanes',
      token: 'nobody',
    })
    opened.allowProblems(/status of 40[13]/)
    await opened.page.getByText('You do not have permission for this').waitFor()
    await opened.screenshot('lanes-403')
  })
})
