/**
 * Every view, in both themes and on wide and narrow screens: axe finds nothing, nothing scrolls
 * sideways, and there is a picture `<view>-<theme>-<width>.png` to look at. The same for what is shown
 * instead of events, and for the settings of people who see or point in another way.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestPage, Visit } from '../../support/browser.ts'
import { nightStory } from '../../support/night-story.ts'
import { withPage } from '../../support/page-server.ts'

const VIEWS = {
  overview: '?range=6h',
  lanes: '?view=lanes&range=6h',
  object: '?view=object&about=Pod/shop/cart-7d9f84c6b5-k5n7z',
  live: '?view=tail',
  sources: '?view=sources&range=6h',
  clusters: '?view=clusters',
} as const
const SCREENS = [
  { theme: 'light', width: 1280 },
  { theme: 'light', width: 360 },
  { theme: 'dark', width: 1280 },
  { theme: 'dark', width: 360 },
] as const

describe('page: views', () => {
  // Enough to scroll; axe looks at every row.
  const ui = withPage(nightStory().slice(-60))

  const open = async (visit: Visit): Promise<TestPage> => {
    const opened = await ui.browser.open(ui.server.base, { token: 'viewer', ...visit })
    // The first request has no token yet.
    return opened
  }

  for (const { theme, width } of SCREENS) {
    test(`all views, ${theme}, ${width} px`, async () => {
      await using opened = await open({ theme, width })
      for (const [name, search] of Object.entries(VIEWS)) {
        await opened.go(search)
        await look(opened, `${name}-${theme}-${width}`)
      }
    })

    test(`what is shown instead of events, ${theme}, ${width} px`, async () => {
      await using opened = await open({ theme, width, token: 'sam' })
      opened.allowProblems(/status of 403/, /ERR_INTERNET_DISCONNECTED/)
      await opened.go('?namespace=shop&reason=NoSuchReason')
      await look(opened, `empty-${theme}-${width}`)
      for (const view of ['overview', 'sources'] as const) {
        await opened.go(VIEWS[view])
        await look(opened, `403-${view}-${theme}-${width}`)
        // How many there are is not known: not even none.
        await opened.page.getByRole('button', { name: 'Warnings', exact: true }).waitFor()
      }
      await opened.context.setOffline(true)
      await opened.go('?namespace=shop&reason=NotAskedYet')
      await opened.page.getByText('The server cannot be reached').first().waitFor()
      await look(opened, `error-${theme}-${width}`)
    })

    test(`signing in, ${theme}, ${width} px`, async () => {
      await using opened = await ui.browser.open(ui.server.base, { theme, width })
      opened.allowProblems(/status of 401/)
      await opened.page.getByLabel('Bearer token').fill('unknown')
      await opened.page.getByRole('button', { name: 'Sign in' }).click()
      await opened.page.getByRole('alert').waitFor()
      await look(opened, `401-${theme}-${width}`)
    })
  }

  test('at 200 %, nothing is lost', async () => {
    // A window of 1280 px.
    await using opened = await open({ width: 640, height: 400 })
    for (const [name, search] of Object.entries(VIEWS)) {
      await opened.go(search)
      await opened.screenshot(`${name}-zoomed`)
      assert.equal(await opened.page.evaluate(OVERFLOW), 0, name)
    }
  })

  test('with forced colours, marks and what is chosen are still seen', async () => {
    await using opened = await open({ media: { forcedColors: 'active' }, theme: 'dark' })
    for (const [name, search] of Object.entries(VIEWS)) {
      await opened.go(search)
      await opened.screenshot(`${name}-forced`)
    }
    await opened.go(VIEWS.overview)
    const chosen = await styleOf(opened, '.range [aria-pressed=true]', 'background-color')
    assert.notEqual(
      await styleOf(opened, '.range [aria-pressed=false]', 'background-color'),
      chosen,
    )
    assert.equal(await styleOf(opened, 'nav [aria-current]', 'background-color'), chosen)
    const line = (of: string): Promise<string> =>
      styleOf(opened, `${of} > .event-line`, 'border-left-color')
    assert.notEqual(await line('.event:not(.event-warning)'), await line('.event-warning'))
  })

  test('with less motion, nothing moves', async () => {
    await using opened = await open({ media: { reducedMotion: 'reduce' } })
    for (const search of Object.values(VIEWS)) {
      await opened.go(search)
      assert.equal(await opened.page.evaluate(MOVING), 0, search)
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
  })

  test('by keyboard: a dialog keeps the focus, and gives it back', async () => {
    await using opened = await open({})
    const { page } = opened
    const keys = page.getByRole('button', { name: 'Shortcuts' })
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
  })

  // The last one: etcd stays down.
  test('etcd down', async () => {
    const opened = await Promise.all(SCREENS.map((screen) => open(screen)))
    for (const one of opened) await one.page.getByText('Multi-Attach error').first().waitFor()
    await ui.server.etcd.member(0).kill()
    for (const one of opened) {
      one.allowProblems(/status of 50\d/)
      await one.page.getByRole('button', { name: 'Refresh' }).click()
    }
    for (const [index, one] of opened.entries()) {
      await one.page.getByText('etcd does not respond: this is what').waitFor({ timeout: 40_000 })
      await look(one, `etcd-down-${SCREENS[index]?.theme}-${SCREENS[index]?.width}`)
      await one.page.getByText('Multi-Attach error').first().waitFor()
      one.assertNoProblems()
    }
  })
})

const OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
const MOVING = `document.getAnimations().filter((one) => one.playState === 'running').length`
const OUTSIDE_DIALOG = `document.activeElement !== document.body && document.activeElement.closest('dialog') === null`

async function look(opened: TestPage, name: string): Promise<void> {
  await opened.screenshot(name)
  try {
    await opened.assertAccessible()
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : error}`)
  }
}

async function styleOf({ page }: TestPage, selector: string, property: string): Promise<string> {
  const [first, name] = [JSON.stringify(selector), JSON.stringify(property)]
  return await page.evaluate(
    `getComputedStyle(document.querySelector(${first})).getPropertyValue(${name})`,
  )
}

interface TabStop {
  readonly html: string
  readonly name: string
  /** Whether the focus has an outline, and is not outside of the window. */
  readonly isSeen: boolean
}

/** Runs in the ui.browser. */
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

/** All of the page: behind the last one is the window, or the first one again. */
async function tabStops({ page }: TestPage): Promise<readonly TabStop[]> {
  const stops: TabStop[] = []
  while (stops.length < TAB_STOPS_MAX) {
    await page.keyboard.press('Tab')
    const stop = (await page.evaluate(TAB_STOP)) as TabStop & { readonly isEnd: boolean }
    if (stop.isEnd || stop.html === stops[0]?.html) return stops
    stops.push(stop)
  }
  assert.fail(`the tabulator key stops more than ${TAB_STOPS_MAX} times`)
}
