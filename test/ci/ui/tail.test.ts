/** The live view, in a real browser. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { TestBrowser, type TestPage } from '../../support/browser.ts'
import { PageServer, type ToldEvent } from '../../support/page-server.ts'

const SCHEDULED = { minutesAgo: 0, reason: 'Scheduled', object: 'Pod/web-0' } as const

describe('page: live view', () => {
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    await server.tell([
      { ...SCHEDULED, minutesAgo: 5, note: 'Assigned to node-4' },
      { ...SCHEDULED, minutesAgo: 2, reason: 'BackOff', type: 'Warning', note: 'Back-off' },
    ])
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  async function openTail(path = '', visit = {}): Promise<TestPage> {
    const opened = await browser.open(server.base, {
      path: `?view=tail${path}`,
      token: 'viewer',
      ...visit,
    })
    opened.allowProblems(/status of 401/)
    await opened.page.getByText('Live', { exact: true }).and(state(opened.page)).waitFor()
    return opened
  }

  function state(page: Page): Locator {
    return page.locator('.tail-link')
  }

  async function notes(page: Page): Promise<readonly string[]> {
    return await page.locator('.event-note').allInnerTexts()
  }

  function told(note: string, more: Partial<ToldEvent> = {}): ToldEvent {
    return { ...SCHEDULED, note, ...more }
  }

  function flood(note: string): ToldEvent {
    return told(note, { namespace: 'flood' })
  }

  test('shows the newest events first, then new ones above them as they happen', async () => {
    await using opened = await openTail()
    const { page } = opened
    assert.match((await notes(page))[0] ?? '', /Back-off/)
    await server.tell([told('first of all')])
    await page.getByText('first of all').waitFor()
    await server.tell([told('and a second one')])
    await page.getByText('and a second one').waitFor()
    const [top, second] = await notes(page)
    assert.match(top ?? '', /second one/)
    assert.match(second ?? '', /first of all/)
    await opened.assertAccessible()
    await opened.screenshot('tail-light')
    opened.assertNoProblems()
  })

  test('stands still while it is paused, counts what is new, and shows it afterwards', async () => {
    await using opened = await openTail()
    const { page } = opened
    const before = await notes(page)
    await page.keyboard.press('Space')
    await page.getByText('Paused', { exact: true }).and(state(page)).waitFor()
    await server.tell([told('while paused 1'), told('while paused 2')])
    const pill = page.getByRole('button', { name: '2 new' })
    await pill.waitFor()
    assert.deepEqual(await notes(page), before)
    await opened.assertAccessible()
    await opened.screenshot('tail-paused')
    await pill.click()
    await page.getByText('while paused 2').waitFor()
    assert.match((await notes(page))[1] ?? '', /while paused 1/)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await server.tell([told('while paused 3')])
    await page.getByRole('button', { name: '1 new' }).waitFor()
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await page.getByText('while paused 3').waitFor()
    opened.assertNoProblems()
  })

  test('pauses while the user has scrolled down, or has opened an event', async () => {
    const many = Array.from({ length: 60 }, (_, n) => told(`row ${n}`, { namespace: 'long' }))
    await server.tell(many)
    await using opened = await openTail('&namespace=long')
    const { page } = opened
    await page.getByText('row 59').waitFor()
    await page.mouse.move(400, 400)
    await page.mouse.wheel(0, 600)
    await page.getByText('Paused while you read').and(state(page)).waitFor()
    await server.tell([told('news', { namespace: 'long' })])
    const back = page.getByRole('button', { name: '1 new – back to top' })
    await back.waitFor()
    await opened.screenshot('tail-scrolled')
    await back.click()
    await page.getByText('news', { exact: true }).waitFor()
    assert.equal(await page.evaluate('scrollY'), 0)
    await page.getByText('news', { exact: true }).click()
    await page.getByText('Paused while you read').and(state(page)).waitFor()
    await page.getByText('news', { exact: true }).first().click()
    await page.getByText('Live', { exact: true }).and(state(page)).waitFor()
    opened.assertNoProblems()
  })

  test('moves an event that is seen again to the top, with its count', async () => {
    const named = { metadata: { name: 'series', namespace: 'again' } }
    await server.tell([told('seen again', { namespace: 'again', members: named })])
    await using opened = await openTail('&namespace=again')
    const { page } = opened
    await server.tell([told('another', { namespace: 'again' })])
    await page.getByText('another').waitFor()
    const { status, body } = await server.tidings.ask('/api/v1/namespaces/again/events/series', {
      method: 'PATCH',
      headers: {
        authorization: 'Bearer root',
        'content-type': 'application/merge-patch+json',
      },
      body: JSON.stringify({
        count: 7,
        lastTimestamp: `${new Date().toISOString().slice(0, 19)}Z`,
      }),
    })
    assert.equal(status, 200, body)
    await page.getByText('×7').waitFor()
    assert.match((await notes(page))[0] ?? '', /seen again/)
    assert.equal((await notes(page)).length, 2)
    assert.equal(await page.locator('.event-marked').count(), 1)
    await opened.screenshot('tail-series')
    const removed = await server.tidings.ask('/api/v1/namespaces/again/events/series', {
      method: 'DELETE',
      headers: { authorization: 'Bearer root' },
    })
    assert.equal(removed.status, 200)
    await server.tell([told('a third', { namespace: 'again' })])
    await page.getByText('a third').waitFor()
    assert.equal((await notes(page)).length, 3)
    opened.assertNoProblems()
  })

  test('shows only what the filters select', async () => {
    await using opened = await openTail('&type=Warning&namespace=picked')
    const { page } = opened
    await page.getByText('No events yet').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('tail-empty')
    await server.tell([
      told('a Normal one', { namespace: 'picked' }),
      told('elsewhere', { type: 'Warning' }),
      told('a Warning', { namespace: 'picked', type: 'Warning' }),
    ])
    await page.getByText('a Warning').waitFor()
    assert.equal((await notes(page)).length, 1)
    opened.assertNoProblems()
  })

  test('tells screen readers how many events came, now and then', async () => {
    await using opened = await openTail()
    await server.tell([told('quiet 1'), told('quiet 2', { type: 'Warning' })])
    const status = opened.page.locator('.announcement')
    // The rows of the beginning are not counted.
    await status.getByText(/^2 new events, 1 of type Warning$/).waitFor({ timeout: 10_000 })
    await opened.page.keyboard.press('Space')
    await status.getByText(/^Paused$/).waitFor()
    await opened.page.keyboard.press('Space')
    await status.getByText(/^Live$/).waitFor()
    opened.assertNoProblems()
  })

  test('has no range and nothing to refresh', async () => {
    await using opened = await openTail()
    const { page } = opened
    assert.equal(await page.getByRole('button', { name: 'Warnings' }).count(), 1)
    assert.equal(await page.getByRole('button', { name: 'Refresh' }).count(), 0)
    assert.equal(await page.locator('.filters .range').count(), 0)
    opened.assertNoProblems()
  })

  test('keeps the newest 500 events, and says where the others are', async () => {
    await using opened = await openTail('&namespace=flood')
    const { page } = opened
    let written = 0
    const write = async (count: number): Promise<void> => {
      const told = Array.from({ length: count }, () => flood(`flood ${written++}`))
      const parts = [0, 1, 2, 3].map((part) => told.filter((_, index) => index % 4 === part))
      await Promise.all(parts.map((part) => server.tell(part)))
    }
    // So many are shown at once, and 200 a second after them: however fast the writers are.
    await write(400)
    await page.getByText('300 older rows are shown when you scroll or pause').waitFor()
    const dropped = page.getByText('Older rows have dropped off')
    const moving = page.getByText('400 older rows are shown when you scroll or pause')
    while (!(await moving.isVisible())) await write(20)
    assert.equal((await notes(page)).length, 100)
    await write(20)
    await page.getByText(`flood ${written - 1}`, { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await dropped.waitFor()
    assert.equal((await notes(page)).length, 500)
    await opened.screenshot('tail-full')
    await page.getByRole('link', { name: 'Show that time in the overview' }).last().click()
    await page.waitForURL(/\?namespace=flood&from=.*&to=/)
    opened.assertNoProblems()
  })

  test('explains a missing permission', async () => {
    await using opened = await browser.open(server.base, { path: '?view=tail', token: 'sam' })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    await page.getByText('You do not have the permission for this').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('tail-403')
    await page.goto(`${server.base}/ui/?view=tail&namespace=shop`)
    await opened.signIn('sam')
    await page.getByText('Assigned to node-4').waitFor()
    opened.assertNoProblems()
  })

  test('ends the session when the token is withdrawn', async () => {
    await using opened = await openTail()
    await server.setTokens('root,root,1,system:masters\n')
    await opened.page.getByLabel('Bearer token').waitFor({ timeout: 60_000 })
    await opened.page.getByText('no longer accepts your token').waitFor()
    opened.assertNoProblems()
  })
})
