/** The page of a server with history, in a real browser: what is no longer in memory is shown, too. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Locator, Page, Route } from 'playwright-core'
import { TestBrowser, type TestPage, type Visit } from '../../support/browser.ts'
import { eventually } from '../../support/eventually.ts'
import { Folder } from '../../support/gate.ts'
import { type PageEvent, PageServer } from '../../support/page-server.ts'

/** Some events leave memory within seconds. */
const RETENTION = `apiVersion: tidings.dev/v1alpha1
kind: RetentionPolicy
rules:
  - { name: past, reason: [BackOff, Killing], lifetime: 2s }
  - { name: others, lifetime: 2h }
`

const DAY = 24 * 60

const past = (daysAgo: number, event: Partial<PageEvent> = {}): PageEvent => ({
  minutesAgo: daysAgo * DAY,
  type: 'Warning',
  reason: 'BackOff',
  object: 'Pod/web-0',
  note: `Back-off of ${daysAgo} days ago`,
  controller: 'former-kubelet',
  ...event,
})

const PAST: readonly PageEvent[] = [
  past(3),
  past(20, { count: 42, overMinutes: 90 }),
  past(21, { object: 'Pod/gone-0', reason: 'Killing', type: 'Normal', note: 'Stopping gone-0' }),
  past(60),
  past(61, { namespace: 'closed', object: 'Pod/till-0', note: 'The shop is closed' }),
]

const PRESENT: readonly PageEvent[] = [
  { minutesAgo: 5, reason: 'Started', object: 'Pod/web-0', note: 'Started container app' },
]

/** The lists of events, but not those of other resources. */
const LISTS = /\/api\/v1\/(namespaces\/\w+\/)?events\?/

describe('page: history', () => {
  let server: PageServer
  let browser: TestBrowser
  let folder: Folder
  before(async () => {
    folder = await Folder.create()
    const policy = await folder.write('retention.yaml', RETENTION)
    server = await PageServer.start([
      `--retention-policy-file=${policy}`,
      `--history=file://${folder.path}/history`,
      '--history-segment-interval=1s',
    ])
    browser = await TestBrowser.start()
    await server.write([...PAST, ...PRESENT])
    await eventually('only history has the past', isArchived, 60_000)
  })
  after(async () => {
    await browser?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  async function isArchived(): Promise<boolean> {
    const { body } = await server.tidings.ask('/apis/tidings.dev/v1alpha1/retentionwindows', {
      headers: { authorization: 'Bearer root' },
    })
    const [{ events, history }] = JSON.parse(body).items
    const oldestMs = Date.parse(history?.oldestTime ?? '')
    return events === PRESENT.length && oldestMs <= Date.now() - 61 * DAY * 60_000
  }

  async function open(visit: Visit = {}): Promise<TestPage> {
    const opened = await browser.open(server.base, { token: 'viewer', ...visit })
    await opened.page.locator('footer').getByText('History since').waitFor()
    return opened
  }

  const rowsOf = (page: Page): Locator =>
    page.getByRole('list', { name: 'Events' }).getByRole('listitem')

  const noteOf = (page: Page, note: string): Locator =>
    page.locator('.event-note, .story-note', { hasText: note })

  const fromHistory = (page: Page): Locator =>
    page.getByText(/^Events from before .*\d\d:\d\d are from history\.$/)

  test('ranges of weeks are offered, listed and counted', async () => {
    await using opened = await open()
    const { page } = opened
    await rowsOf(page).first().waitFor()
    await page.getByRole('button', { name: '90d' }).click()
    await page.waitForURL(/\?range=90d$/)
    await fromHistory(page).waitFor()
    await opened.settle()
    const notes = await page.locator('.event-note').allTextContents()
    assert.deepEqual(
      notes.map((note) => note.trim()),
      [
        'Started container app',
        'Back-off of 3 days ago',
        'Back-off of 20 days ago',
        'Stopping gone-0',
        'Back-off of 60 days ago',
        'The shop is closed',
      ],
    )
    const readout = await page.locator('.histogram-readout').textContent()
    assert.match(readout ?? '', /45 Warnings, 2 Normal; a bar is 1 d$/)
    const incident = page.getByRole('table', { name: 'Incidents' }).getByRole('row')
    await incident
      .filter({ hasText: /BackOff.*Back-off of/ })
      .first()
      .waitFor()
    await opened.assertAccessible()
    await opened.screenshot('history-overview')
    await page.getByRole('button', { name: '30d' }).click()
    await page.waitForURL(/\?range=30d$/)
    await noteOf(page, 'Back-off of 60 days ago').waitFor({ state: 'detached' })
    await noteOf(page, 'Back-off of 20 days ago').waitFor()
    await page.locator('.histogram-readout', { hasText: /a bar is 6 h$/ }).waitFor()
    await opened.screenshot('history-overview-30d')
  })

  test('two days of the past are typed, and are in the address', async () => {
    await using opened = await open()
    const { page } = opened
    await page.getByRole('button', { name: 'Custom' }).click()
    const form = page.getByRole('form', { name: 'Custom time range' })
    const day = (daysAgo: number): string =>
      new Date(Date.now() - daysAgo * DAY * 60_000).toISOString().slice(0, 10)
    await form.getByLabel('From').fill(`${day(22)}T00:00:00`)
    await form.getByLabel('to').fill(`${day(18)}T00:00:00`)
    await form.getByRole('button', { name: 'Apply' }).press('Enter')
    await page.waitForURL(/from=.*to=/)
    await noteOf(page, 'Stopping gone-0').waitFor()
    assert.equal(await rowsOf(page).count(), 2)
    await fromHistory(page).waitFor()
    const { search } = new URL(page.url())
    await using other = await open({ path: search })
    await noteOf(other.page, 'Stopping gone-0').waitFor()
    await other.settle()
    assert.match((await other.page.locator('.histogram-readout').textContent()) ?? '', /42 Warn/)
  })

  test('the footer says how far back memory and history go, and how far history is behind', async () => {
    await using opened = await open()
    const footer = opened.page.locator('footer')
    await footer.getByText(/^Oldest event in memory \S+ ago$/).waitFor()
    await footer.getByText(/^History since \d{4}-\d\d-\d\d, \S+ behind$/).waitFor()
    await footer.getByRole('button', { name: 'More' }).click()
    await footer.getByText(/events of the last \S+ are not in it yet/).waitFor()
    await opened.assertAccessible()
    await opened.screenshot('history-footer')
  })

  test('lanes and sources have the past', async () => {
    await using opened = await open({ path: '?view=lanes&range=30d' })
    const { page } = opened
    await page.getByRole('listitem').filter({ hasText: 'gone-0' }).waitFor()
    await fromHistory(page).waitFor()
    await opened.assertAccessible()
    await opened.screenshot('history-lanes')
    await opened.go('?view=sources&range=30d')
    await fromHistory(page).waitFor()
    await page.getByRole('region', { name: 'Reasons' }).getByText('BackOff').waitFor()
    await opened.assertAccessible()
  })

  test('a namespace that has nothing in memory is found', async () => {
    await using opened = await open({ path: '?namespace=closed&range=90d' })
    const { page } = opened
    await noteOf(page, 'The shop is closed').waitFor()
    await fromHistory(page).waitFor()
    await opened.assertAccessible()
  })

  test('the story of an object goes back as far as the range, or to the beginning', async () => {
    await using opened = await open({ path: '?view=object&about=Pod/shop/web-0' })
    const { page } = opened
    await noteOf(page, 'Started container app').waitFor()
    assert.equal(await noteOf(page, 'Back-off of 20 days ago').count(), 0)
    await opened.go('?view=object&about=Pod/shop/web-0&range=30d')
    await noteOf(page, 'Back-off of 20 days ago').waitFor()
    assert.equal(await noteOf(page, 'Back-off of 60 days ago').count(), 0)
    await page.getByRole('button', { name: 'Search all of history' }).press('Enter')
    await page.waitForURL(/&about=Pod%2Fshop%2Fweb-0&history=all$/)
    await noteOf(page, 'Back-off of 60 days ago').waitFor()
    await fromHistory(page).waitFor()
    await opened.assertAccessible()
    assert.match(await opened.copied('kubectl'), /-n shop --field-selector .*since=/)
    await opened.screenshot('history-object')
    // What is visited later is not searched for in all of history.
    await page.getByRole('link', { name: '← Overview' }).click()
    await page.waitForURL(/\?range=30d$/)
    await page.getByRole('link', { name: 'Pod/gone-0' }).first().click()
    await page.waitForURL(/about=Pod%2Fshop%2Fgone-0$/)
    await noteOf(page, 'Stopping gone-0').waitFor()
  })

  test('a search shows how far it has come, is cancelled, and goes on', async () => {
    await using opened = await open()
    const { page } = opened
    const search = await slowSearch(page)
    await page.getByRole('button', { name: '90d' }).click()
    const progress = page.getByText(
      /^Reading history… Searched back to \d{4}-\d\d-\d\d \d\d:\d\d\./,
    )
    await search.found(2)
    await progress.waitFor()
    await noteOf(page, 'Back-off of 3 days ago').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('history-searching')
    await page.getByRole('button', { name: 'Cancel' }).press('Enter')
    await page.getByText(/^Cancelled\. Searched back to /).waitFor()
    await opened.settle()
    assert.equal(await page.getByRole('alert').count(), 0)
    assert.equal(await rowsOf(page).count(), 2)
    assert.equal(await page.getByRole('button', { name: 'Show older' }).count(), 0)
    await opened.assertAccessible()
    await search.found(20)
    // The button has kept the focus.
    await page.keyboard.press('Enter')
    await noteOf(page, 'The shop is closed').waitFor()
    await fromHistory(page).waitFor()
    assert.equal(await rowsOf(page).count(), 6)
    assert.equal(await page.getByText('Searched back to').count(), 0)
  })

  for (const [view, result] of [
    ['lanes', 'till-0'],
    ['object&about=Pod/shop/web-0&history=all', 'Back-off of 60 days ago'],
  ] as const) {
    test(`a search of the view ${view} is cancelled, and goes on`, async () => {
      await using opened = await open()
      const { page } = opened
      const search = await slowSearch(page)
      await opened.page.evaluate(
        `history.pushState(null, '', '?range=90d&view=${view}'); dispatchEvent(new PopStateEvent('popstate'))`,
      )
      await search.found(2)
      await page.getByText(/^Reading history… Searched back to /).waitFor()
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.getByText(/^Cancelled\./).waitFor()
      const found = page.locator('main').getByRole('listitem').filter({ hasText: result })
      assert.equal(await found.count(), 0)
      assert.equal(await page.getByText(/^No event(s in this range| mentions)/).count(), 0)
      await search.found(20)
      await page.getByRole('button', { name: 'Go on' }).click()
      await found.waitFor()
    })
  }

  test('counts are cancelled without an error, and made later', async () => {
    await using opened = await open()
    const { page } = opened
    const held: Route[] = []
    await page.route('**/eventhistograms?*', (route) => void held.push(route))
    await page.getByRole('button', { name: '90d' }).click()
    const busy = page.getByText(/^Reading history… \ds/)
    await busy.waitFor()
    await page.getByText(/^Reading history… 2s/).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Cancelled.').waitFor()
    await page.getByText('No counts').waitFor()
    await opened.settle()
    assert.equal(await page.getByRole('alert').count(), 0)
    await page.unroute('**/eventhistograms?*')
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByText(/45 Warnings, 2 Normal/).waitFor()
    await fromHistory(page).waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
  })

  test('top sources are cancelled, and counted later', async () => {
    await using opened = await open({ path: '?view=sources' })
    const { page } = opened
    const reasons = page.getByRole('region', { name: 'Reasons' })
    await reasons.getByRole('link', { name: 'Started' }).waitFor()
    await opened.settle()
    await page.route('**/eventsummaries?*groupBy=reason*', () => {})
    await page.getByRole('button', { name: '90d' }).click()
    await page.getByRole('region', { name: 'Controllers' }).getByText('former-kubelet').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Cancelled.').waitFor()
    assert.equal(await reasons.count(), 0)
    await page.unroute('**/eventsummaries?*groupBy=reason*')
    await page.getByRole('button', { name: 'Go on' }).click()
    await reasons.getByText('BackOff').waitFor()
  })

  test('what history cannot answer now is said in its words, and asked again', async () => {
    await using opened = await open()
    opened.allowProblems(/status of (401|503)/)
    const { page } = opened
    let asked = 0
    await page.route(LISTS, (route) => {
      asked++
      return route.fulfill({
        status: 503,
        headers: { 'retry-after': '2' },
        json: { reason: 'ServiceUnavailable', message: 'history cannot be read now: no disk' },
      })
    })
    await page.getByRole('button', { name: '90d' }).click()
    const alert = page.getByRole('alert')
    await alert.getByText('history cannot be read now: no disk').waitFor()
    await alert.getByRole('button', { name: 'Try again' }).waitFor()
    await alert.getByText(/The page retries in \d+ s\./).waitFor()
    assert.equal(asked, 1, 'memory is not asked instead')
    assert.equal(await page.getByText('etcd does not respond').count(), 0)
    await opened.assertAccessible()
    await page.unroute(LISTS)
    await alert.waitFor({ state: 'detached' })
    await noteOf(page, 'The shop is closed').waitFor()
  })

  test('history that takes time is read again only when the user wants it', async () => {
    await using opened = await open()
    const { page } = opened
    const held = Promise.withResolvers<void>()
    const answer = async (route: Route): Promise<void> => {
      await held.promise
      await route.fallback()
    }
    await page.clock.install()
    await page.route('**/eventhistograms?*', answer)
    await page.getByRole('button', { name: '90d' }).click()
    await page.getByText('Reading history…').waitFor()
    await page.clock.runFor(2_000)
    held.resolve()
    await fromHistory(page).waitFor()
    await opened.settle()
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.clock.runFor(120_000)
    assert.deepEqual(
      asked.filter((url) => LISTS.test(url)),
      [],
    )
    await page.unroute('**/eventhistograms?*')
    const refreshed = page.waitForRequest(LISTS)
    await page.keyboard.press('r')
    await refreshed
  })

  test('suggestions come from memory', async () => {
    await using opened = await open({ path: '?range=90d' })
    const { page } = opened
    await fromHistory(page).waitFor()
    const asked = page.waitForRequest(/groupBy=reason&/)
    await page.getByLabel('Reason', { exact: true }).press('ArrowDown')
    const since = /since=([^,]+)/.exec(
      new URL((await asked).url()).searchParams.get('fieldSelector') ?? '',
    )?.[1]
    assert.ok(Date.now() - Date.parse(since ?? '') < 3_600_000, since)
  })

  test('dark, and on a small screen', async () => {
    await using opened = await open({ path: '?range=90d', theme: 'dark', width: 360, height: 740 })
    await fromHistory(opened.page).waitFor()
    await opened.settle()
    await opened.assertAccessible()
    await opened.screenshot('history-narrow')
  })
})

/**
 * Answers as the server does when time runs out: each page has one event, and says how far it has
 * come. Each list waits before it has more pages than `found` has allowed.
 */
async function slowSearch(page: Page): Promise<{ found(pages: number): Promise<void> }> {
  let allowed = 0
  let answered = 0
  await page.route(LISTS, async (route) => {
    const url = new URL(route.request().url())
    url.searchParams.set('limit', '1')
    // The page may be closed meanwhile.
    const response = await route.fetch({ url: url.href }).catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    if (response === undefined || text === undefined) return
    const list = JSON.parse(text)
    const [event] = list.items
    const reached = event?.lastTimestamp ?? url.searchParams.get('since')
    while (answered >= allowed && !page.isClosed()) await sleep(20)
    answered++
    const warning = `299 - "history was searched only up to ${reached} in the time that a request has: continue the list, or narrow it"`
    const isCut = list.metadata.continue !== undefined
    const headers = { ...response.headers(), ...(isCut ? { warning } : {}) }
    // The user may have cancelled it.
    await route.fulfill({ response, headers, json: list }).catch(() => {})
  })
  return {
    found: async (pages) => {
      allowed = pages
      while (answered < Math.min(pages, 2)) await sleep(20)
    },
  }
}
