/**
 * Every view, in both themes and on wide and narrow screens: axe finds nothing, nothing scrolls
 * sideways, and there is a picture `<view>-<theme>-<width>.png` to look at. The same for what is shown
 * instead of events, and for the settings of people who see or point in another way.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TestBrowser, type TestPage, type Visit } from '../../support/browser.ts'
import { nightStory } from '../../support/night-story.ts'
import { PageServer } from '../../support/page-server.ts'

const VIEWS: Readonly<Record<string, string>> = {
  overview: '?range=6h',
  lanes: '?view=lanes&range=6h',
  object: '?view=object&about=Pod/shop/cart-7d9f4-k5',
  live: '?view=tail',
  sources: '?view=sources&range=6h',
  clusters: '?view=clusters',
}
const THEMES = ['light', 'dark'] as const
const WIDTHS = [1280, 360] as const

describe('page: views', () => {
  let server: PageServer
  let browser: TestBrowser
  before(async () => {
    server = await PageServer.start()
    browser = await TestBrowser.start()
    await server.tell(nightStory())
  })
  after(async () => {
    await browser[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const open = async (visit: Visit): Promise<TestPage> => {
    const opened = await browser.open(server.base, { token: 'viewer', ...visit })
    // Of the first request, which has no token yet.
    opened.allowProblems(/status of 401/)
    await opened.settle()
    return opened
  }

  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      test(`all views, ${theme}, ${width} px`, async () => {
        await using opened = await open({ theme, width })
        for (const [name, search] of Object.entries(VIEWS)) {
          await opened.go(search)
          await look(opened, `${name}-${theme}-${width}`)
        }
        opened.assertNoProblems()
      })

      test(`what is shown instead of events, ${theme}, ${width} px`, async () => {
        await using opened = await open({ theme, width, token: 'sam' })
        opened.allowProblems(/status of 40[0134]/)
        await opened.go('?namespace=shop&reason=NoSuchReason')
        await look(opened, `empty-${theme}-${width}`)
        await opened.go('?cluster=Not%20A%20Name')
        await look(opened, `error-${theme}-${width}`)
        for (const [name, search] of Object.entries(VIEWS)) {
          if (name === 'object') continue
          await opened.go(search)
          await look(opened, `403-${name}-${theme}-${width}`)
        }
        opened.assertNoProblems()
      })

      test(`signing in, ${theme}, ${width} px`, async () => {
        await using opened = await browser.open(server.base, { theme, width })
        opened.allowProblems(/status of 401/)
        await opened.page.getByLabel('Bearer token').fill('unknown')
        await opened.page.getByRole('button', { name: 'Sign in' }).click()
        await opened.page.getByRole('alert').waitFor()
        await look(opened, `401-${theme}-${width}`)
        opened.assertNoProblems()
      })
    }
  }

  test('other settings: zoom, forced colours, more contrast, less motion', async () => {
    const settings: Readonly<Record<string, Visit>> = {
      // A window of 1280 px at 200 %.
      zoomed: { width: 640, height: 400 },
      forced: { media: { forcedColors: 'active' }, theme: 'dark' },
      contrast: { media: { contrast: 'more' } },
      still: { media: { reducedMotion: 'reduce' } },
    }
    for (const [setting, visit] of Object.entries(settings)) {
      await using opened = await open(visit)
      for (const [name, search] of Object.entries(VIEWS)) {
        await opened.go(search)
        await opened.screenshot(`${name}-${setting}`)
        await assertNoMotion(opened)
      }
      await opened.assertAccessible()
      opened.assertNoProblems()
    }
  })

  test('by keyboard: every control is reached, is seen, and has a name', async () => {
    await using opened = await open({})
    for (const [view, search] of Object.entries(VIEWS)) {
      await opened.go(search)
      await opened.page.evaluate('document.activeElement?.blur()')
      for (const stop of await tabStops(opened)) {
        assert.notEqual(stop.name, '', `${view}: ${stop.html}`)
        assert.ok(stop.isSeen, `${view}: the focus is not seen on ${stop.html}`)
      }
    }
    opened.assertNoProblems()
  })

  test('by keyboard: a dialog keeps the focus, and gives it back', async () => {
    await using opened = await open({})
    const { page } = opened
    const keys = page.getByRole('button', { name: 'Keys' })
    await keys.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await look(opened, 'keys-light-1280')
    for (let press = 0; press < 6; press++) {
      await page.keyboard.press('Tab')
      assert.equal(await page.evaluate(OUTSIDE_DIALOG), false)
    }
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    assert.equal(await keys.evaluate((one) => one.matches(':focus')), true)
    opened.assertNoProblems()
  })
})

test('page: while etcd is down, the page says so and keeps what it has', async () => {
  await using server = await PageServer.start()
  await using browser = await TestBrowser.start()
  await server.tell(nightStory().slice(-8))
  await using opened = await browser.open(server.base, { token: 'viewer' })
  const { page } = opened
  opened.allowProblems(/status of (401|50\d)/)
  await page.getByText('Multi-Attach error').waitFor()
  await server.etcd.member(0).kill()
  await page.getByRole('button', { name: 'Refresh' }).click()
  await page.getByRole('contentinfo').getByText('etcd does not respond').waitFor()
  await page.getByText('Multi-Attach error').waitFor()
  await look(opened, 'etcd-down-light-1280')
  await page.emulateMedia({ colorScheme: 'dark' })
  await look(opened, 'etcd-down-dark-1280')
  opened.assertNoProblems()
})

const OUTSIDE_DIALOG = `document.activeElement !== document.body && document.activeElement.closest('dialog') === null`

async function look(opened: TestPage, name: string): Promise<void> {
  await opened.screenshot(name)
  try {
    await opened.assertAccessible()
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`)
  }
}

async function assertNoMotion({ page }: TestPage): Promise<void> {
  const running = await page.evaluate(
    `document.getAnimations().filter((one) => one.playState === 'running').length`,
  )
  assert.equal(running, 0, 'something moves')
}

interface TabStop {
  readonly html: string
  readonly name: string
  /** Whether the focus has an outline, and is not outside of the window. */
  readonly isSeen: boolean
}

/** Runs in the browser. */
const TAB_STOP = `(() => {
  const one = document.activeElement
  const style = getComputedStyle(one)
  const box = one.getBoundingClientRect()
  const label = one.getAttribute('aria-labelledby')
  const name = one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent ?? (label === null ? one.textContent : document.getElementById(label)?.textContent)
  const hasOutline = style.outlineStyle !== 'none' && style.outlineWidth !== '0px'
  return {
    html: one.outerHTML.slice(0, 120),
    name: (name ?? '').trim(),
    isSeen: hasOutline && box.width > 0 && box.bottom > 0 && box.top < innerHeight,
    isEnd: one === document.body,
  }
})()`

const TAB_STOPS_MAX = 150

async function tabStops({ page }: TestPage): Promise<readonly TabStop[]> {
  const stops: TabStop[] = []
  while (stops.length < TAB_STOPS_MAX) {
    await page.keyboard.press('Tab')
    const stop = (await page.evaluate(TAB_STOP)) as TabStop & { readonly isEnd: boolean }
    if (stop.isEnd) return stops
    stops.push(stop)
  }
  assert.fail(`the tabulator key stops more than ${TAB_STOPS_MAX} times`)
}
