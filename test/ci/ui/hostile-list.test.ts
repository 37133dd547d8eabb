/** Whoever may write events chooses their texts: the list of events shows them as texts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestBrowser } from '../../support/browser.ts'
import { assertHarmless } from '../../support/harmless.ts'
import { HOSTILE, hostileEvents } from '../../support/hostile-values.ts'
import { PageServer } from '../../support/page-server.ts'

/** Where there is less room, more breaks. */
const NARROW = 360

test('page: hostile texts stay texts in the list of events and in their details', async () => {
  await using server = await PageServer.start()
  await using browser = await TestBrowser.start()
  await server.write(hostileEvents())
  const visit = { path: '?range=6h', token: 'viewer', width: NARROW }
  await using opened = await browser.open(server.base, visit)
  await opened.settle()
  await assertHarmless(opened, 'overview')
  await opened.assertAccessible()
  await opened.screenshot('hostile-list')
  const notes = opened.page.locator('.event-note')
  const count = await notes.count()
  assert.ok(count >= Object.keys(HOSTILE).length, `${count} events`)
  for (let index = 0; index < count; index++) await notes.nth(index).click()
  await opened.settle()
  await assertHarmless(opened, 'details')
  await opened.screenshot('hostile-details')
})
