/** Signing in to the page, in a real browser. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withPage } from '../../support/page-server.ts'

describe('page: sign-in', () => {
  const ui = withPage([
    { minutesAgo: 5, reason: 'Scheduled', object: 'Pod/web-0', note: 'Assigned to node-4' },
  ])

  test('a pasted token opens the events, and is neither in the URL nor stored', async () => {
    await using opened = await ui.browser.open(ui.server.base)
    const { page } = opened
    await page.getByLabel('Bearer token').waitFor()
    await opened.assertAccessible()
    await opened.screenshot('sign-in')
    await opened.signIn('viewer')
    await page.getByText('Assigned to node-4').first().waitFor()
    assert.equal(page.url(), `${ui.server.base}/ui/`)
    assert.equal(
      await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])'),
      '[{},{}]',
    )
    assert.deepEqual(await opened.context.cookies(), [])
    await page.reload()
    await page.getByLabel('Bearer token').waitFor()
  })

  test('a wrong token is refused with a reason', async () => {
    await using opened = await ui.browser.open(ui.server.base)
    opened.allowProblems(/status of 401/)
    const { page } = opened
    await page.getByLabel('Bearer token').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('does not accept this token').waitFor()
    await opened.screenshot('sign-in-401')
  })

  test('what cannot be a token is not sent, and said to be none', async () => {
    await using opened = await ui.browser.open(ui.server.base)
    opened.allowProblems(/status of 401/)
    const { page } = opened
    await page.getByLabel('Bearer token').fill('view\u2026er')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('This is not a token').waitFor()
  })

  test('an answer that breaks the page is said, with a way out', async () => {
    await using opened = await ui.browser.open(ui.server.base)
    const { page } = opened
    await page.getByLabel('Bearer token').waitFor()
    const broken = { status: { userInfo: { username: {}, groups: [] } } }
    await page.route('**/selfsubjectreviews*', (route) => route.fulfill({ json: broken }))
    await page.getByLabel('Bearer token').fill('viewer')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'This page failed' }).waitFor()
    await opened.assertAccessible()
    await opened.screenshot('page-failed')
    await page.unroute('**/selfsubjectreviews*')
    await page.getByRole('button', { name: 'Reload' }).click()
    await opened.signIn('viewer')
  })

  test('an answer to the user before does not sign out the next one', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'viewer' })
    opened.allowProblems(/ERR_FAILED/)
    const { page } = opened
    let refuse = (): void => {}
    const refused = new Promise<void>((resolve) => {
      refuse = resolve
    })
    await page.route('**/api/v1/namespaces?*', async (route) => {
      await refused
      await route.fulfill({ status: 401, body: '{}' }).catch(() => {})
    })
    const asked = page.waitForRequest('**/api/v1/namespaces?*')
    await page.getByLabel('Namespace').focus()
    await page.getByLabel('Namespace').press('ArrowDown')
    await asked
    await page.getByRole('button', { name: 'Sign out' }).click()
    await opened.signIn('root')
    refuse()
    await page.waitForTimeout(500)
    await page.getByRole('banner').getByText('root', { exact: true }).waitFor()
  })

  test('views have titles, and begin at their top with the focus', async () => {
    await using opened = await ui.browser.open(ui.server.base, { token: 'viewer' })
    const { page } = opened
    const titled = async (title: string): Promise<void> => {
      await until(async () => (await page.title()) === title)
      assert.equal(await page.title(), title)
    }
    await titled('Overview · Events')
    await page.getByRole('link', { name: 'Top sources' }).click()
    await titled('Top sources · Events')
    assert.equal(await page.evaluate('document.activeElement.id'), 'view')
    await opened.go('?view=object&about=Pod/shop/web-0')
    await titled('Pod/shop/web-0 · Events')
    await page.goBack()
    await titled('Top sources · Events')
  })

  test('the theme follows the system until the user chooses one', async () => {
    await using opened = await ui.browser.open(ui.server.base, { theme: 'dark' })
    const { page } = opened
    const isDark = async (): Promise<boolean> =>
      (await page.evaluate('getComputedStyle(document.body).backgroundColor')) === 'rgb(20, 24, 28)'
    await page.getByLabel('Bearer token').waitFor()
    assert.equal(await isDark(), true)
    await page.emulateMedia({ colorScheme: 'light' })
    await until(async () => !(await isDark()))
    assert.equal(await isDark(), false)
    await opened.signIn('viewer')
    await page.getByRole('button', { name: 'Theme: system' }).click()
    await page.getByRole('button', { name: 'Theme: light' }).click()
    assert.equal(await isDark(), true)
    await page.reload()
    await page.getByLabel('Bearer token').waitFor()
    assert.equal(await isDark(), true)
  })

  test('a kept token survives a reload of the tab, until the user signs out', async () => {
    await using opened = await ui.browser.open(ui.server.base)
    const { page } = opened
    await page.getByLabel('Keep it in this tab').check()
    await opened.signIn('viewer')
    await page.reload()
    await page.getByText('Assigned to node-4').first().waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Bearer token').waitFor()
    await page.reload()
    await page.getByLabel('Bearer token').waitFor()
  })
})

/** The page is asked until it holds, or five seconds have passed. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let round = 0; round < 50 && !(await holds()); round++) await sleep(100)
}
