/** The view of clusters: one that is followed, one whose server is away, one that is written here. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { TestBrowser } from '../../support/browser.ts'
import { Folder } from '../../support/gate.ts'
import { PageServer } from '../../support/page-server.ts'
import { WebhookServer } from '../../support/webhook-server.ts'

const CLUSTERS = `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
  - { name: prod-eu, kubeconfig: prod-eu.kubeconfig, mirror: {} }
  - { name: prod-us, kubeconfig: prod-us.kubeconfig, mirror: {} }
`

function kubeconfig(server: string, ca: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority': ca } }],
    users: [{ name: 'u', user: { token: 'root' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })
}

describe('page: clusters', () => {
  let folder: Folder
  let origin: PageServer
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    folder = await Folder.create()
    browser = await TestBrowser.start()
    origin = await PageServer.start()
    await origin.write([
      { minutesAgo: 9, reason: 'Pulled', object: 'Pod/eu-0', note: 'In Europe' },
      { minutesAgo: 8, reason: 'BackOff', type: 'Warning', object: 'Pod/eu-0', note: 'Back-off' },
    ])
    const ca = join(origin.tidings.folder, 'tidings.crt')
    await folder.write('prod-eu.kubeconfig', kubeconfig(origin.base, ca))
    // Nobody listens there.
    await folder.write('prod-us.kubeconfig', kubeconfig('https://127.0.0.1:1', ca))
    server = await PageServer.start([
      `--clusters-file=${await folder.write('clusters.yaml', CLUSTERS)}`,
    ])
    await server.write([{ minutesAgo: 5, reason: 'Started', object: 'Pod/here', note: 'Here' }])
  })
  after(async () => {
    await browser?.[Symbol.asyncDispose]()
    await server?.[Symbol.asyncDispose]()
    await origin?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  test('shows the states of mirrors, and refreshes itself', async () => {
    await using opened = await browser.open(server.base, { path: '?view=clusters', token: 'root' })
    const { page } = opened
    const rowOf = (name: string) => page.getByRole('row').filter({ hasText: name })
    await rowOf('local').getByText('Not mirrored').waitFor()
    // The next poll, or the one after it, finds both mirrors started.
    await rowOf('prod-eu').getByText('Following').waitFor({ timeout: 60_000 })
    await rowOf('prod-eu').getByText('up to date').waitFor({ timeout: 30_000 })
    await rowOf('prod-us').getByText('Stalled').waitFor({ timeout: 60_000 })
    await rowOf('prod-us').getByText('ECONNREFUSED').waitFor()
    await rowOf('all clusters').getByText('3', { exact: true }).waitFor({ timeout: 60_000 })
    await opened.assertAccessible()
    await opened.screenshot('clusters')
  })

  test('a name leads to the events of the cluster', async () => {
    await using opened = await browser.open(server.base, { path: '?view=clusters', token: 'root' })
    const { page } = opened
    const link = page.getByRole('link', { name: 'prod-eu' })
    assert.equal(await link.getAttribute('href'), '?cluster=prod-eu')
    await link.click()
    await page.getByText('In Europe').first().waitFor()
    await page.goBack()
    await page.getByRole('link', { name: 'all clusters' }).click()
    await page.getByText('In Europe').first().waitFor()
    await page.getByText('Here', { exact: true }).first().waitFor()
  })

  test('dark, and on a small screen', async () => {
    await using opened = await browser.open(server.base, {
      path: '?view=clusters&cluster=prod-eu',
      token: 'root',
      width: 360,
      theme: 'dark',
    })
    await opened.page.getByText('Stalled').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('clusters-narrow-dark')
  })

  test('who may read one cluster only sees that one, and what clusters are for', async () => {
    await using opened = await browser.open(server.base, {
      path: '?view=clusters',
      token: 'viewer',
    })
    const { page } = opened
    await page.getByText('You see one cluster here').waitFor()
    await page.getByText('--clusters-file').waitFor()
    assert.equal(await page.getByRole('row').count(), 2)
    await opened.assertAccessible()
    await opened.screenshot('clusters-one')
  })

  test('who may not list clusters is told why', async () => {
    await using opened = await browser.open(server.base, { path: '?view=clusters', token: 'sam' })
    opened.allowProblems(/status of 40[13]/)
    const { page } = opened
    await page.getByText('You do not have permission for this').waitFor()
    await page.getByText('bound for the whole cluster').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('clusters-403')
  })
})

test('page: a user whom one cluster knows signs in there, and the token is not sent elsewhere', async () => {
  await using folder = await Folder.create()
  // The API server of the cluster, which says who its users are and what they may do.
  await using origin = await WebhookServer.start((question, response) => {
    const { kind, apiVersion, spec } = question as {
      readonly kind: string
      readonly apiVersion: string
      readonly spec: { readonly token?: string }
    }
    const user = { username: 'ada', groups: [] }
    const status =
      kind === 'TokenReview' ? { authenticated: spec.token === 'theirs', user } : { allowed: true }
    response.writeHead(201).end(JSON.stringify({ kind, apiVersion, status }))
  })
  await folder.write('prod.kubeconfig', origin.kubeconfig)
  const clusters = `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
  - { name: prod, kubeconfig: prod.kubeconfig, authorization: origin, tokens: { opaque: true } }
`
  await using server = await PageServer.start([
    `--clusters-file=${await folder.write('clusters.yaml', clusters)}`,
  ])
  await using browser = await TestBrowser.start()
  await using opened = await browser.open(server.base, { path: '?cluster=prod', token: 'theirs' })
  // A 401 closes the connection, as in Kubernetes. The browser retries what was sent behind it, and
  // gives up when several 401s in a row hit one request; the page asks again later.
  opened.allowProblems(
    /status of 40[13]/,
    /ERR_(HTTP2_SERVER_REFUSED_STREAM|SOCKET_NOT_CONNECTED|CONNECTION|FAILED)/,
  )
  const { page } = opened
  const user = page.getByRole('banner').getByText('ada', { exact: true })
  await user.waitFor()
  const leaked: string[] = []
  page.on('request', (request) => {
    const isOfCluster = new URL(request.url()).pathname.startsWith('/clusters/prod/')
    if (!isOfCluster && 'authorization' in request.headers()) leaked.push(request.url())
  })
  assert.deepEqual(await page.getByRole('option', { name: 'All clusters' }).count(), 0)
  await page.getByLabel('Cluster', { exact: true }).selectOption('Default cluster')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await opened.settle()
  assert.deepEqual(leaked, [])
  // Back in the cluster, its token is still known.
  await page.goBack()
  await user.waitFor()
})
