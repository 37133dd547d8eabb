/**
 * Whoever may write events chooses their texts: the page shows them as texts, everywhere. The list
 * of events is in test/ci/ui/hostile-list.test.ts.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestPage } from '../../support/browser.ts'
import { assertHarmless } from '../../support/harmless.ts'
import { HOSTILE, hostileEvents, shownAs } from '../../support/hostile-values.ts'
import { withPage } from '../../support/page-server.ts'

const NARROW = 360
/** Where there is less room, more breaks. */
const WIDTHS = [NARROW] as const
/** All times that a date can name. */
const EVER = 'from=1900-01-01T00:00:00Z&to=9999-01-01T00:00:00Z'
/** White space is shown as one space where a text has one line. */
const IN_A_LINE = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

describe('page: hostile content', () => {
  const ui = withPage(hostileEvents())

  const open = async (path: string, width: number): Promise<TestPage> => {
    const opened = await ui.browser.open(ui.server.base, { path, token: 'viewer', width })
    await opened.settle()
    return opened
  }

  for (const width of WIDTHS) {
    for (const view of ['lanes', 'tail', 'sources', 'clusters']) {
      test(`${view}, ${width} px: texts stay texts, in their place`, async () => {
        await using opened = await open(`?view=${view}&range=6h`, width)
        await assertHarmless(opened, view)
        await opened.assertAccessible()
        await opened.screenshot(`hostile-${view}-${width}`)
      })
    }

    test(`times that cannot be, ${width} px`, async () => {
      await using opened = await open('', width)
      for (const view of ['overview', 'lanes', 'sources']) {
        await opened.go(`?view=${view}&${EVER}`)
        await assertHarmless(opened, view)
        await opened.screenshot(`hostile-ever-${view}-${width}`)
      }
    })
  }

  test('filters with hostile values', async () => {
    await using opened = await open('', NARROW)
    opened.allowProblems(/status of 40[034]/)
    for (const [name, value] of Object.entries(HOSTILE)) {
      const some = { kind: value, reason: value, controller: value, text: value }
      for (const filters of [some, { object: value, namespace: value }, { cluster: value }]) {
        await opened.go(`?${new URLSearchParams(filters)}&range=6h`)
        await assertHarmless(opened, name)
      }
    }
  })

  test('the story of an object with a hostile name', async () => {
    await using opened = await open('', NARROW)
    opened.allowProblems(/status of 400/)
    for (const [name, value] of Object.entries(HOSTILE)) {
      await opened.go(
        `?${new URLSearchParams({ view: 'object', about: `${value}/shop/${value}` })}`,
      )
      await assertHarmless(opened, name)
      if (name === 'override') await opened.screenshot(`hostile-object`)
    }
  })

  test('every value is shown in full, character by character', async () => {
    await using opened = await open('?range=6h', 1280)
    const shown = IN_A_LINE(String(await opened.page.evaluate('document.body.textContent')))
    for (const name of Object.keys(HOSTILE)) {
      assert.ok(shown.includes(IN_A_LINE(shownAs(name))), name)
    }
  })

  test('a click on a hostile reason selects its events', async () => {
    await using opened = await open('', 1280)
    for (const name of ['script', 'override', 'escapes', 'proto', 'selector', 'rightToLeft']) {
      await opened.go('?range=6h')
      const reason = opened.page.locator('.event-reason button')
      await reason.filter({ hasText: shownAs(name) }).click()
      await opened.settle()
      await opened.page.locator('.event').first().waitFor()
      assert.equal(await opened.page.locator('.event').count(), 1, name)
      await assertHarmless(opened, name)
    }
  })
})
