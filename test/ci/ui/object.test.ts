/** The view of one object, in a real browser. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type PageEvent, withPage } from '../../support/page-server.ts'

const pod = (uid: string) => ({
  involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid },
})

const LONG_NOTE = `Readiness probe failed: ${'connection refused, '.repeat(70)}end of the note`

const STORY: readonly PageEvent[] = [
  {
    minutesAgo: 300,
    reason: 'Scheduled',
    object: 'Pod/web-0',
    controller: 'default-scheduler',
    note: 'Successfully assigned shop/web-0 to node-4',
    members: pod('0b9d3a51-0001'),
  },
  {
    minutesAgo: 90,
    type: 'Warning',
    reason: 'BackOff',
    object: 'Pod/web-0',
    note: 'Back-off restarting failed container',
    count: 52,
    overMinutes: 80,
    members: pod('0b9d3a51-0001'),
  },
  {
    minutesAgo: 120,
    reason: 'Killing',
    object: 'Pod/web-0',
    note: 'Stopping container app',
    members: {
      ...pod('0b9d3a51-0001'),
      related: { kind: 'Node', name: 'node-4' },
    },
  },
  {
    minutesAgo: 20,
    reason: 'Scheduled',
    object: 'Pod/web-0',
    controller: 'default-scheduler',
    note: 'Successfully assigned shop/web-0 to node-5',
    members: pod('0b9d3a51-0002'),
  },
  {
    minutesAgo: 4,
    type: 'Warning',
    reason: 'Unhealthy',
    object: 'Pod/web-0',
    note: LONG_NOTE,
    members: pod('0b9d3a51-0002'),
  },
  {
    minutesAgo: 21,
    reason: 'Preempted',
    object: 'Pod/batch-7',
    namespace: 'batch',
    note: 'Preempted by shop/web-0 on node node-5',
    members: { related: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: '0b9d3a51-0002' } },
  },
  {
    minutesAgo: 22,
    reason: 'Elsewhere',
    object: 'Pod/web-0',
    namespace: 'batch',
    note: 'Another pod, which has the same name',
  },
]

describe('page: an object', () => {
  const ui = withPage(STORY)

  const path = '?view=object&about=Pod/shop/web-0'

  test('its story is in the order in which it began, and has events of other namespaces', async () => {
    await using opened = await ui.browser.open(ui.server.base, { path, token: 'viewer' })
    const { page } = opened
    const story = page.getByRole('list', { name: 'Events, by when they began' })
    await story.waitFor()
    const reasons = await story.locator('strong').allTextContents()
    assert.deepEqual(reasons, [
      'Scheduled',
      'BackOff',
      'Killing',
      'Preempted',
      'Scheduled',
      'Unhealthy',
    ])
    const text = (await story.textContent()) ?? ''
    for (const part of [
      '×52 over 80m',
      'nothing for 2 h 10 min',
      'nothing for 1 h 9 min',
      'about Pod/batch/batch-7',
      'with Node/node-4',
      'Another object of the same name, uid 0b9d3a51-0002',
    ]) {
      assert.ok(text.includes(part), `${part} in ${text}`)
    }
    await opened.assertAccessible()
    await opened.screenshot('object')
  })

  test('a long note is cut until it is opened', async () => {
    await using opened = await ui.browser.open(ui.server.base, { path, token: 'viewer' })
    const { page } = opened
    const more = page.getByRole('button', { name: 'more', exact: true })
    await more.waitFor()
    assert.equal(await page.getByText('end of the note').count(), 0)
    await more.click()
    await page.getByText('end of the note').waitFor()
  })

  test('of several objects of one name, one can be chosen', async () => {
    await using opened = await ui.browser.open(ui.server.base, { path, token: 'viewer' })
    const { page } = opened
    await page.getByText('2 objects had this name').waitFor()
    await page.getByRole('link', { name: 'only uid 0b9d3a51-0001' }).click()
    await page.getByText('Only the object with uid').waitFor()
    assert.deepEqual(await page.locator('.story strong').allTextContents(), [
      'Scheduled',
      'BackOff',
      'Killing',
    ])
    assert.match(page.url(), /about=Pod%2Fshop%2Fweb-0%400b9d3a51-0001$/)
    await page.getByRole('link', { name: 'Show all objects of this name' }).click()
    await page.getByText('2 objects had this name').waitFor()
  })

  test('who may read one namespace sees its events, and that others may be missing', async () => {
    await using opened = await ui.browser.open(ui.server.base, { path, token: 'sam' })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    await page.getByText('but you may not read them').waitFor()
    assert.equal(await page.locator('.story strong').count(), 5)
    await page.goto(`${ui.server.base}/ui/?view=object&about=Node/node-4&namespace=shop`)
    await opened.signIn('sam')
    await page.getByText('Only events of the namespace shop').waitFor()
    await page.getByText('about Pod/shop/web-0').waitFor()
    await page.goto(`${ui.server.base}/ui/?view=object&about=Node/node-4`)
    await opened.signIn('sam')
    await page.getByText('You do not have permission for this').waitFor()
    await opened.screenshot('object-403')
  })

  test('a uid is enough', async () => {
    const byUid = '?view=object&about=0b9d3a51-0002'
    await using opened = await ui.browser.open(ui.server.base, { path: byUid, token: 'viewer' })
    await opened.page.getByText('Preempted by shop/web-0').waitFor()
    assert.equal(await opened.page.locator('.story strong').count(), 3)
  })

  test('any object can be opened by its name, and links back keep the filters', async () => {
    const filtered = '?view=object&namespace=shop&type=Warning&range=6h'
    await using opened = await ui.browser.open(ui.server.base, { path: filtered, token: 'viewer' })
    const { page } = opened
    await opened.assertAccessible()
    await opened.screenshot('object-form')
    await page.getByLabel('Kind').fill('Node')
    await page.getByRole('textbox', { name: 'Namespace' }).fill('')
    await page.getByLabel('Name', { exact: true }).fill('node-4')
    await page.getByLabel('Name', { exact: true }).press('Enter')
    await page.getByText('Stopping container app').waitFor()
    await page.getByRole('link', { name: 'Pod/shop/web-0' }).click()
    await page.getByText('Preempted by shop/web-0').waitFor()
    await page.getByRole('link', { name: '← Overview' }).click()
    assert.equal(new URL(page.url()).search, '?namespace=shop&type=Warning&range=6h')
  })

  test('an object that nobody mentions', async () => {
    const unknown = '?view=object&about=Pod/shop/nothing'
    await using opened = await ui.browser.open(ui.server.base, { path: unknown, token: 'viewer' })
    await opened.page.getByText('No event mentions this object').waitFor()
    await opened.assertAccessible()
  })

  test('is usable in the dark and on a telephone', async () => {
    for (const [name, visit] of [
      ['object-dark', { theme: 'dark' }],
      ['object-360', { width: 360, height: 640 }],
    ] as const) {
      await using opened = await ui.browser.open(ui.server.base, {
        path,
        token: 'viewer',
        ...visit,
      })
      await opened.page.locator('.story').waitFor()
      await opened.assertAccessible()
      await opened.screenshot(name)
    }
  })
})
