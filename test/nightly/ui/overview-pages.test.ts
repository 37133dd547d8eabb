/** Older events, page by page, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { TestBrowser } from '../../support/browser.ts'
import { PageServer } from '../../support/page-server.ts'
import { seedEvents } from '../../support/seed-events.ts'

/** More than the page lists. */
const EVENTS = 2_150
const ROWS_MAX = 2_000
const FIRST_ROWS = 100
const OLDER_ROWS = 250
/** Some are of the same second, and are listed twice where a page begins anew. */
const SAME_ROWS_MAX = 20

describe('page: older events', () => {
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    const client = new EtcdClient({ endpoints: server.etcd.endpoints, defaultTimeoutMs: 10_000 })
    await seedEvents(client, { count: EVENTS, spanMs: 50 * 60_000 })
    client.close()
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  /** The names of the newest events, as the API has them. */
  async function newest(): Promise<readonly string[]> {
    const names: string[] = []
    let next = ''
    do {
      const path = `/api/v1/events?order=newest&limit=500&continue=${encodeURIComponent(next)}`
      const { body } = await server.tidings.ask(path, {
        headers: { authorization: 'Bearer root' },
      })
      const { items, metadata } = JSON.parse(body)
      names.push(...items.map((event: { message: string }) => event.message))
      next = metadata.continue ?? ''
    } while (next !== '')
    return names
  }

  test('follow each other without a gap, also when the server has forgotten the list', async () => {
    await using opened = await browser.open(server.base, { token: 'viewer' })
    opened.allowProblems(/status of (401|410)/, /ERR_CONNECTION/)
    const { page } = opened
    const rows = page.getByRole('list', { name: 'Events' }).getByRole('listitem')
    const until = (count: number): Promise<void> =>
      rows.nth(count - 1).waitFor({ state: 'attached' })
    await until(FIRST_ROWS)
    assert.equal(await rows.count(), FIRST_ROWS)
    await page.getByRole('button', { name: 'Show older' }).click()
    await until(FIRST_ROWS + OLDER_ROWS)
    // Its memory of the list is gone with the process.
    await server.restart()
    const gone = page.waitForResponse((response) => response.status() === 410)
    const scroll = 'window.scrollTo(0, document.documentElement.scrollHeight)'
    await page.evaluate(scroll)
    await gone
    await until(FIRST_ROWS + 2 * OLDER_ROWS - SAME_ROWS_MAX)
    assert.equal(await page.getByRole('alert').count(), 0)
    for (let count = await rows.count(); count < ROWS_MAX; count = await rows.count()) {
      await page.evaluate(scroll)
      await until(count + 1)
    }
    await page.getByText('These are the newest 2,000 events').waitFor()
    const notes = await page.locator('.event-note').allTextContents()
    assert.deepEqual(notes, (await newest()).slice(0, ROWS_MAX))
  })
})
