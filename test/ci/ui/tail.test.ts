/** The live view, in a real browser. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import type { TestPage } from '../../support/browser.ts'
import { type PageEvent, withPage } from '../../support/page-server.ts'

const SCHEDULED = { minutesAgo: 0, reason: 'Scheduled', object: 'Pod/web-0' } as const

describe('page: live view', () => {
  const ui = withPage([
    { ...SCHEDULED, minutesAgo: 5, note: 'Assigned to node-4' },
    { ...SCHEDULED, minutesAgo: 2, reason: 'BackOff', type: 'Warning', note: 'Back-off' },
  ])

  async function openTail(path = '', visit = {}): Promise<TestPage> {
    const opened = await ui.browser.open(ui.server.base, {
      path: `?view=tail${path}`,
      token: 'viewer',
      ...visit,
    })
    await opened.page.getByText('Live', { exact: true }).and(state(opened.page)).waitFor()
    return opened
  }

  function state(page: Page): Locator {
    return page.locator('.tail-link')
  }

  async function notes(page: Page): Promise<readonly string[]> {
    return await page.locator('.event-note').allInnerTexts()
  }

  function eventWith(note: string, more: Partial<PageEvent> = {}): PageEvent {
    return { ...SCHEDULED, note, ...more }
  }

  function flood(note: string): PageEvent {
    return eventWith(note, { namespace: 'flood' })
  }

  test('shows the newest events first, then new ones above them as they happen', async () => {
    await using opened = await openTail()
    const { page } = opened
    assert.match((await notes(page))[0] ?? '', /Back-off/)
    await ui.server.write([eventWith('first of all')])
    await page.getByText('first of all').waitFor()
    await ui.server.write([eventWith('and a second one')])
    await page.getByText('and a second one').waitFor()
    const [top, second] = await notes(page)
    assert.match(top ?? '', /second one/)
    assert.match(second ?? '', /first of all/)
    await opened.assertAccessible()
    await opened.screenshot('tail-light')
  })

  test('stands still while it is paused, counts what is new, and shows it afterwards', async () => {
    await using opened = await openTail()
    const { page } = opened
    const before = await notes(page)
    await page.keyboard.press('Space')
    await page.getByText('Paused', { exact: true }).and(state(page)).waitFor()
    await ui.server.write([eventWith('while paused 1'), eventWith('while paused 2')])
    const pill = page.getByRole('button', { name: '2 new' })
    await pill.waitFor()
    assert.deepEqual(await notes(page), before)
    await opened.assertAccessible()
    await opened.screenshot('tail-paused')
    await pill.click()
    await page.getByText('while paused 2').waitFor()
    assert.match((await notes(page))[1] ?? '', /while paused 1/)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await ui.server.write([eventWith('while paused 3')])
    await page.getByRole('button', { name: '1 new' }).waitFor()
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await page.getByText('while paused 3').waitFor()
  })

  test('pauses while the user has scrolled down, or has opened an event', async () => {
    const many = Array.from({ length: 60 }, (_, n) => eventWith(`row ${n}`, { namespace: 'long' }))
    await ui.server.write(many)
    await using opened = await openTail('&namespace=long')
    const { page } = opened
    await page.getByText('row 59').waitFor()
    await page.mouse.move(400, 400)
    await page.mouse.wheel(0, 600)
    await page.getByText('Paused while you read').and(state(page)).waitFor()
    await ui.server.write([eventWith('news', { namespace: 'long' })])
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
  })

  test('moves an event that is seen again to the top, with its count', async () => {
    const named = { metadata: { name: 'series', namespace: 'again' } }
    await ui.server.write([eventWith('seen again', { namespace: 'again', members: named })])
    await using opened = await openTail('&namespace=again')
    const { page } = opened
    await ui.server.write([eventWith('another', { namespace: 'again' })])
    await page.getByText('another').waitFor()
    const { status, body } = await ui.server.tidings.ask('/api/v1/namespaces/again/events/series', {
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
    const removed = await ui.server.tidings.ask('/api/v1/namespaces/again/events/series', {
      method: 'DELETE',
      headers: { authorization: 'Bearer root' },
    })
    assert.equal(removed.status, 200)
    await ui.server.write([eventWith('a third', { namespace: 'again' })])
    await page.getByText('a third').waitFor()
    assert.equal((await notes(page)).length, 3)
  })

  test('shows only what the filters select', async () => {
    await using opened = await openTail('&type=Warning&namespace=picked')
    const { page } = opened
    await page.getByText('No events yet').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('tail-empty')
    await ui.server.write([
      eventWith('a Normal one', { namespace: 'picked' }),
      eventWith('elsewhere', { type: 'Warning' }),
      eventWith('a Warning', { namespace: 'picked', type: 'Warning' }),
    ])
    await page.getByText('a Warning').waitFor()
    assert.equal((await notes(page)).length, 1)
  })

  test('tells screen readers how many events came, now and then', async () => {
    await using opened = await openTail()
    await ui.server.write([eventWith('quiet 1'), eventWith('quiet 2', { type: 'Warning' })])
    const status = opened.page.locator('.announcement')
    // The rows of the beginning are not counted.
    await status.getByText(/^2 new events, 1 of type Warning$/).waitFor({ timeout: 10_000 })
    await opened.page.keyboard.press('Space')
    await status.getByText(/^Paused$/).waitFor()
    await opened.page.keyboard.press('Space')
    await status.getByText(/^Live$/).waitFor()
  })

  test('has no range and nothing to refresh', async () => {
    await using opened = await openTail()
    const { page } = opened
    assert.equal(await page.getByRole('button', { name: 'Warnings' }).count(), 1)
    assert.equal(await page.getByRole('button', { name: 'Refresh' }).count(), 0)
    assert.equal(await page.locator('.filters .range').count(), 0)
  })

  test('keeps the newest 500 events, and says where the others are', async () => {
    await using opened = await openTail('&namespace=flood')
    const { page } = opened
    let written = 0
    const write = async (count: number): Promise<void> => {
      const told = Array.from({ length: count }, () => flood(`flood ${written++}`))
      const parts = [0, 1, 2, 3].map((part) => told.filter((_, index) => index % 4 === part))
      await Promise.all(parts.map((part) => ui.server.write(part)))
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
  })

  test('explains a missing permission', async () => {
    await using opened = await ui.browser.open(ui.server.base, { path: '?view=tail', token: 'sam' })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    await page.getByText('You do not have permission for this').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('tail-403')
    await page.goto(`${ui.server.base}/ui/?view=tail&namespace=shop`)
    await opened.signIn('sam')
    await page.getByText('Assigned to node-4').waitFor()
  })

  test('ends the session when the token is withdrawn', async () => {
    await using opened = await openTail()
    await ui.server.setTokens('root,root,1,system:masters\n')
    await opened.page.getByLabel('Bearer token').waitFor({ timeout: 60_000 })
    await opened.page.getByText('no longer accepts your token').waitFor()
  })
})
