/** The footer of the page: how far back events go, what is missing, the state of the server. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TestBrowser, type TestPage } from '../../support/browser.ts'
import { Folder } from '../../support/gate.ts'
import { type PageEvent, PageServer } from '../../support/page-server.ts'
import { Tidings } from '../../support/tidings.ts'

const RETENTION = `apiVersion: tidings.dev/v1alpha1
kind: RetentionPolicy
rules:
  - { name: pulls, reason: [Pulling, Pulled], controller: kubelet, lifetime: 2d }
  - { name: warnings, type: Warning, lifetime: 14d }
  - { name: all, lifetime: 7d }
budgets:
  - { name: shop, per: Namespace, namespace: shop, events: 20 }
`

const LIMITS = `apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits: [{ type: Namespace, qps: 1, burst: 5 }]
`

/** More than the budget, the oldest of three hours ago. */
function story(): readonly PageEvent[] {
  return Array.from({ length: 30 }, (_, index) => ({
    minutesAgo: 180 - index * 6,
    type: index % 5 === 0 ? 'Warning' : 'Normal',
    reason: index % 5 === 0 ? 'BackOff' : 'Started',
    object: `Pod/web-${index % 4}`,
    note: `Note ${index}`,
  }))
}

function footerOf({ page }: TestPage): ReturnType<TestPage['page']['locator']> {
  return page.locator('footer')
}

describe('page: status of the server', () => {
  let server: PageServer
  let browser: TestBrowser
  let folder: Folder
  before(async () => {
    folder = await Folder.create()
    const retention = await folder.write('retention.yaml', RETENTION)
    server = await PageServer.start([`--retention-policy-file=${retention}`])
    browser = await TestBrowser.start()
    await server.write(story())
    await server.write([
      {
        minutesAgo: 400,
        reason: 'Scheduled',
        object: 'Pod/api-0',
        note: 'Early',
        namespace: 'pay',
      },
    ])
  })
  after(async () => {
    await browser?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  test('the footer says how long events are kept, and since when', async () => {
    await using opened = await browser.open(server.base, {
      path: '?namespace=shop',
      token: 'viewer',
    })
    const footer = footerOf(opened)
    await footer.getByText('Ready').waitFor()
    await footer
      .getByText('Events are kept 7 days after their last write (Warnings 14 days); 1 further rule')
      .waitFor()
    await footer.getByText(/^Oldest event \S+ ago$/).waitFor()
    await footer.getByText('tidings 0.1.0').waitFor()
    await footer.getByRole('button', { name: 'More' }).click()
    await footer.getByText('Retention of the namespace shop').waitFor()
    await footer.getByText('at most 20 events').waitFor()
    await footer.getByText('reason=Pulling|Pulled controller=kubelet: 2 days').waitFor()
    await footer.getByText('datastore passes').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('status')
  })

  test('it counts what a budget has evicted', async () => {
    await using opened = await browser.open(server.base, {
      path: '?namespace=shop',
      token: 'viewer',
    })
    const footer = footerOf(opened)
    await footer.getByRole('button', { name: 'More' }).click()
    const evicted = footer.getByText('10 evicted', { exact: true })
    for (let attempt = 0; attempt < 30 && !(await evicted.isVisible()); attempt++) {
      await footer.getByRole('button', { name: 'Check now' }).click()
      await opened.page.waitForTimeout(500)
    }
    assert.equal(await evicted.isVisible(), true)
  })

  test('views say from when on events are kept, if their range begins earlier', async () => {
    await using opened = await browser.open(server.base, {
      path: '?namespace=shop',
      token: 'viewer',
    })
    const { page } = opened
    const note = page.getByText(/^No events from before .*\d\d:\d\d are kept/)
    await footerOf(opened).getByText('Oldest event').waitFor()
    assert.equal(await note.count(), 0)
    for (const view of ['overview', 'lanes', 'sources']) {
      await page.goto(`${server.base}/ui/?namespace=shop&range=24h&view=${view}`)
      await opened.signIn('viewer')
      await note.waitFor()
    }
  })

  test('dark, and on a small screen', async () => {
    await using opened = await browser.open(server.base, {
      path: '?namespace=shop',
      token: 'viewer',
      width: 360,
      theme: 'dark',
    })
    const footer = footerOf(opened)
    await footer.getByText('Ready').waitFor()
    await footer.getByRole('button', { name: 'More' }).click()
    await footer.scrollIntoViewIfNeeded()
    await opened.assertAccessible()
    await opened.screenshot('status-narrow-dark')
  })

  test('who may see one namespace only is told about that one', async () => {
    await using opened = await browser.open(server.base, { token: 'sam' })
    opened.allowProblems(/status of 40[13]/)
    const footer = footerOf(opened)
    await footer.getByText('Ready').waitFor()
    await footer.getByRole('button', { name: 'More' }).click()
    await footer.getByText('You may not see how long events are kept here').waitFor()
    await footer.getByText('cannot list resource "retentionwindows"').waitFor()
    await opened.page.getByLabel('Namespace').fill('shop')
    await opened.page.getByLabel('Namespace').press('Enter')
    await footer.getByText('Events are kept 7 days').waitFor()
  })

  test('who may see nothing still sees the state', async () => {
    await using opened = await browser.open(server.base, { token: 'nobody' })
    opened.allowProblems(/status of 40[13]/)
    await footerOf(opened).getByText('Ready').waitFor()
  })
})

describe('page: status of a server in trouble', () => {
  let server: PageServer
  let browser: TestBrowser
  let folder: Folder
  before(async () => {
    folder = await Folder.create()
    const limits = await folder.write('limits.yaml', LIMITS)
    server = await PageServer.start([`--event-rate-limit-config-file=${limits}`])
    browser = await TestBrowser.start()
    await server.write([
      { minutesAgo: 5, reason: 'Scheduled', object: 'Pod/web-0', note: 'Assigned to node-4' },
    ])
  })
  after(async () => {
    await browser?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  test('the footer counts the writes that a limit has refused', async () => {
    const told = { minutesAgo: 1, reason: 'Flood', object: 'Pod/web-0', note: 'Again' }
    const writes = Array.from({ length: 20 }, () => server.write([told]))
    const outcomes = await Promise.allSettled(writes)
    const refused = outcomes.filter(({ status }) => status === 'rejected').length
    assert.ok(refused > 0)
    await using opened = await browser.open(server.base, { token: 'viewer' })
    await footerOf(opened).getByText(`${refused} refused`, { exact: true }).waitFor()
    await footerOf(opened).getByRole('button', { name: 'More' }).click()
    await footerOf(opened)
      .getByText(/^\d+ writes? since this replica has started/)
      .waitFor()
    await opened.screenshot('status-refused')
  })

  test('etcd is down: the footer is red, and green again afterwards', async () => {
    await using opened = await browser.open(server.base, { token: 'viewer' })
    opened.allowProblems(/status of (401|50\d)/)
    const footer = footerOf(opened)
    await footer.getByText('Ready').waitFor()
    await server.etcd.member(0).kill()
    await footer.getByRole('button', { name: 'More' }).click()
    await footer.getByRole('button', { name: 'Check now' }).click()
    await footer.getByText('etcd does not respond (check datastore)').waitFor()
    await footer.getByText('Events written now are not stored').first().waitFor()
    await opened.assertAccessible()
    await opened.screenshot('status-etcd-down')
    await server.etcd.member(0).start()
    await footer.getByText('Ready').waitFor({ timeout: 40_000 })
  })

  test('the server is away: it says since when, and recovers by itself', async () => {
    await using opened = await browser.open(server.base, { token: 'viewer' })
    opened.allowProblems(/net::ERR/)
    const footer = footerOf(opened)
    await footer.getByText('Ready').waitFor()
    await footer.getByRole('button', { name: 'More' }).click()
    await opened.context.setOffline(true)
    await footer.getByRole('button', { name: 'Check now' }).click()
    await footer.getByText('The server does not respond').waitFor()
    await footer.getByText(/Nothing new is shown since \d\d:\d\d:\d\d\./).waitFor()
    await opened.screenshot('status-away')
    await opened.context.setOffline(false)
    await footer.getByText('Ready').waitFor({ timeout: 30_000 })
  })

  test('a proxy that hides the state is no problem', async () => {
    await using opened = await browser.open(server.base)
    opened.allowProblems(/status of 40[13]/)
    for (const status of [401, 403]) {
      await opened.page.route('**/readyz*', (route) => route.fulfill({ status, body: 'no' }))
      await opened.page.reload()
      await opened.signIn('viewer')
      const footer = footerOf(opened)
      await footer.getByText('State unknown').waitFor()
      await footer.getByText(`does not show /readyz to you (${status})`).waitFor()
      await footer.getByText('Events are kept 8 days').waitFor()
    }
  })

  test('a replica that has loaded nothing yet says so', async () => {
    await using folder = await Folder.create()
    await using starting = await Tidings.start([
      '--etcd-servers=http://127.0.0.1:1',
      `--token-auth-file=${await folder.write('tokens.csv', 'root,root,1,system:masters\n')}`,
    ])
    const base = `https://127.0.0.1:${starting.port}`
    await using opened = await browser.open(base, { path: '?view=sources', token: 'root' })
    opened.allowProblems(/status of (401|50\d)/)
    const footer = footerOf(opened)
    await footer.getByText('etcd does not respond').waitFor()
    await footer.getByText('Also failing: informer-sync.').waitFor()
    await footer.getByRole('button', { name: 'More' }).click()
    await footer.getByText('informer-sync fails: This replica is loading its events').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('status-starting')
  })
})
