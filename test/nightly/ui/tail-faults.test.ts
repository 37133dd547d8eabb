/** The live view when the network, the server, etcd or the attention of the user is away. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { TestBrowser, type TestPage, type Visit } from '../../support/browser.ts'
import { FaultProxy } from '../../support/fault-proxy.ts'
import { PageServer } from '../../support/page-server.ts'

describe('page: live view under faults', () => {
  let server: PageServer
  let browser: TestBrowser
  let proxy: FaultProxy
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    proxy = await FaultProxy.start(server.base)
    await write('at the beginning')
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await proxy[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(() => proxy.set('pass'))

  async function openTail(visit: Visit = {}): Promise<TestPage> {
    const opened = await browser.open(`https://${proxy.address}`, {
      path: '?view=tail',
      token: 'viewer',
      ...visit,
    })
    // The browser itself reports what a test does to the network.
    opened.allowProblems(/status of (401|500|503|504)/, /net::ERR/)
    return opened
  }

  async function write(...notes: readonly string[]): Promise<void> {
    await server.write(
      notes.map((note) => ({ minutesAgo: 0, reason: 'Pulled', object: 'Pod/web-0', note })),
    )
  }

  async function untilState(page: Page, text: RegExp): Promise<void> {
    await page.locator('.tail-link').getByText(text).waitFor({ timeout: 45_000 })
  }

  async function assertNoGap(page: Page): Promise<void> {
    assert.equal(await page.locator('.tail-gap').count(), 0)
  }

  /** The rows from the top down to this one. */
  async function notesDownTo(page: Page, last: string): Promise<readonly string[]> {
    const texts = await page.locator('.event-note').allInnerTexts()
    const notes = texts.map((text) => text.replace(/^\W+/, ''))
    return notes.slice(0, notes.indexOf(last) + 1)
  }

  test('resumes after a failure of the network without a gap', async () => {
    await using opened = await openTail()
    const { page } = opened
    await untilState(page, /^Live$/)
    await write('before the cut')
    await page.getByText('before the cut').waitFor()
    proxy.set('refuse')
    await untilState(page, /Reconnecting in \d+ s – The server cannot be reached/)
    await page.locator('.announcement').getByText('The connection was lost').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('tail-reconnecting')
    await write('during the cut 1', 'during the cut 2')
    proxy.set('pass')
    await page.getByText('during the cut 2').waitFor({ timeout: 45_000 })
    assert.deepEqual(await notesDownTo(page, 'before the cut'), [
      'during the cut 2',
      'during the cut 1',
      'before the cut',
    ])
    await untilState(page, /^Live$/)
    await assertNoGap(page)
  })

  test('resumes after a restart of the server without a gap', async () => {
    await using opened = await openTail()
    const { page } = opened
    await untilState(page, /^Live$/)
    await write('before the restart')
    await page.getByText('before the restart').waitFor()
    await server.restart()
    await write('after the restart')
    await page.getByText('after the restart').waitFor({ timeout: 45_000 })
    assert.deepEqual(await notesDownTo(page, 'before the restart'), [
      'after the restart',
      'before the restart',
    ])
    await assertNoGap(page)
  })

  test('shows a gap when history was lost, and what is left of that time', async () => {
    const old = { reason: 'Pulled', object: 'Pod/web-1', note: 'before the tab' }
    await server.write(Array.from({ length: 150 }, () => ({ ...old, minutesAgo: 10 })))
    await using opened = await openTail()
    const { page } = opened
    await untilState(page, /^Live$/)
    await write('before the gap')
    await page.getByText('before the gap').waitFor()
    proxy.set('refuse')
    await untilState(page, /Reconnecting/)
    await write('in the gap')
    await compact()
    // A server that was there all the time would have the history in memory.
    await server.restart()
    proxy.set('pass')
    await page.locator('.tail-gap').waitFor({ timeout: 45_000 })
    await write('after the gap')
    await page.getByText('after the gap').waitFor()
    assert.deepEqual(await notesDownTo(page, 'before the gap'), [
      'after the gap',
      'in the gap',
      'before the gap',
    ])
    // The tab began with the newest 100; older ones are not shown as if they were of the gap.
    assert.ok((await page.locator('.event').count()) <= 103)
    const text = (await page.locator('.tail-gap').textContent()) ?? ''
    assert.match(text, /no longer has the changes between \d\d:\d\d:\d\d and \d\d:\d\d:\d\d/)
    await opened.assertAccessible()
    await opened.screenshot('tail-gap')
    await page.locator('.tail-gap').getByRole('link').click()
    await page.waitForURL(/\?from=.*&to=/)
    await page.getByText('in the gap').waitFor()
  })

  test('keeps its rows after a failure, and goes on without a gap when the user asks', async () => {
    await using opened = await openTail()
    opened.allowProblems(/status of 404/)
    const { page } = opened
    await untilState(page, /^Live$/)
    await write('before the failure')
    await page.getByText('before the failure').waitFor()
    await page.route(/watch=true/, (route) => route.fulfill({ status: 404, body: 'not here' }))
    proxy.cut()
    await page.getByText('Error 404').waitFor({ timeout: 45_000 })
    await untilState(page, /^Stopped$/)
    await page.getByText('before the failure').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('tail-stopped')
    await write('while it was stopped')
    await page.unroute(/watch=true/)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('while it was stopped').waitFor()
    assert.equal(await page.getByText('Error 404').count(), 0)
    await assertNoGap(page)
  })

  async function compact(): Promise<void> {
    const client = new EtcdClient({ endpoints: server.etcd.endpoints, defaultTimeoutMs: 5_000 })
    const { revision } = await client.range({ key: Buffer.from('/'), limit: 1 })
    await client.compact(revision)
    client.close()
  }

  test('says so when etcd is away, and goes on when it is back', async () => {
    const [etcd] = server.etcd.members
    assert.ok(etcd)
    etcd.pause()
    try {
      await using opened = await openTail({ theme: 'dark' })
      const { page } = opened
      await untilState(page, /Reconnecting in \d+ s – etcd does not respond/)
      await page.locator('.event').first().waitFor()
      await opened.screenshot('tail-etcd-down')
      etcd.resume()
      await untilState(page, /^Live$/)
      await write('etcd is back')
      await page.getByText('etcd is back').waitFor()
    } finally {
      etcd.resume()
    }
  })

  test('reconnects when nothing comes any more, not even a bookmark', async () => {
    await using opened = await openTail()
    const { page } = opened
    await page.clock.install()
    await page.reload()
    await opened.signIn('viewer')
    await untilState(page, /^Live$/)
    proxy.set('blackhole')
    await write('into the black hole')
    const asked = page.waitForRequest(/limit=1$/)
    await page.clock.fastForward(85_000)
    // The connection does not end, so only the clock shows that nobody is there.
    await asked
    proxy.set('pass')
    proxy.cut()
    await page.getByText('into the black hole').waitFor({ timeout: 45_000 })
    await assertNoGap(page)
  })

  test('stops in a tab that is hidden for a minute, and resumes without a gap', async () => {
    await using opened = await openTail()
    const { page } = opened
    await page.clock.install()
    await page.reload()
    await opened.signIn('viewer')
    await untilState(page, /^Live$/)
    const watches = countWatches(page)
    await setHidden(page, true)
    await page.clock.fastForward(50_000)
    assert.equal(await page.locator('.tail-link').textContent(), 'Live')
    await page.clock.fastForward(15_000)
    await untilState(page, /Paused in the background/)
    await write('while nobody looked')
    assert.equal(watches.ended, 1)
    assert.equal(await page.getByText('while nobody looked').count(), 0)
    await setHidden(page, false)
    await page.getByText('while nobody looked').waitFor()
    await assertNoGap(page)
    assert.equal(watches.begun, 1)
  })

  test('is readable in the dark and on a narrow screen', async () => {
    await write('a note of some length, as notes are: Back-off restarting failed container web')
    await server.write([
      {
        minutesAgo: 0,
        reason: 'BackOff',
        object: 'Pod/web-0',
        type: 'Warning',
        note: 'restarting failed container',
        count: 12,
        overMinutes: 13,
      },
    ])
    await using dark = await openTail({ theme: 'dark' })
    await untilState(dark.page, /^Live$/)
    await dark.assertAccessible()
    await dark.screenshot('tail-dark')
    await using narrow = await openTail({ width: 360, height: 720 })
    await untilState(narrow.page, /^Live$/)
    await narrow.assertAccessible()
    await narrow.screenshot('tail-narrow')
    dark.assertNoProblems()
  })
})

/** Counts watches that begin or end after the call. */
function countWatches(page: Page): { begun: number; ended: number } {
  const counts = { begun: 0, ended: 0 }
  page.on('request', (request) => {
    if (request.url().includes('watch=true')) counts.begun++
  })
  page.on('requestfailed', (request) => {
    if (request.url().includes('watch=true')) counts.ended++
  })
  return counts
}

/** A browser without a window never hides a tab by itself. */
async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
}
