/**
 * Follows the section "Look at it" of the tutorial literally, in a browser: it clicks what is bold, and
 * looks for what is in quotation marks. follow.test.ts types the commands of the other sections.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { Locator } from 'playwright-core'
import { blocksOf } from '../../../tools/markdown.ts'
import { TestBrowser, type TestPage } from '../../support/browser.ts'
import { startDev } from '../../support/dev-server.ts'
import { findKubectl } from '../../support/kubectl.ts'

const TUTORIAL = join(import.meta.dirname, '../../../docs/tutorials/on-call-night.md')
const SECTION = /^## Look at it\n([\s\S]*?)^## /m
const kubectl = await findKubectl()

test('page: the tutorial is right about it', {
  skip: kubectl === undefined && 'there is no kubectl on this machine',
}, async () => {
  const tutorial = await readFile(TUTORIAL, 'utf8')
  const steps = stepsOf(SECTION.exec(tutorial)?.[1] ?? '')
  assert.equal(steps.length, 8)
  const commands = blocksOf(tutorial).filter(({ language }) => language === 'sh')
  const [scene = '', repair = ''] = [
    commands.find(({ text }) => text.includes('NodeNotReady'))?.text,
    commands.find(({ text }) => text.includes('FailedAttachVolume'))?.text,
  ]
  const home = await mkdtemp(join(tmpdir(), 'tidings-tutorial-'))
  const dev = await startDev([`--data-dir=${join(home, 'night')}`])
  await using browser = await TestBrowser.start()
  try {
    type(scene, home)
    const link = dev.lines.join('\n').match(/https:\/\/localhost:\d+\/ui\/#code=\w+/)?.[0] ?? ''
    const [base = '', path = ''] = link.split('/ui/')
    await using opened = await browser.open(base, { path })
    await opened.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    for (const step of steps) await follow(opened, step)
    type(`${functionOf(scene)}\n${repair}`, home)
    await opened.page.getByText('Multi-Attach error for volume web-data').waitFor()
    await opened.screenshot('tutorial')
  } finally {
    dev.child.kill('SIGTERM')
    await once(dev.child, 'exit')
    await rm(home, { recursive: true, force: true })
  }
})

/** The items of the list, one line each. */
function stepsOf(section: string): readonly string[] {
  const items = section.split(/^\d+\. /m).slice(1)
  return items.map((item) => item.replaceAll(/\s+/g, ' ').trim())
}

/** Does what the step says, and sees what it says. */
async function follow(opened: TestPage, step: string): Promise<void> {
  const { page } = opened
  const clicked = /Click \*\*(.+?)\*\*/.exec(step)?.[1]
  const seen = /You see “(.+?)”/.exec(step)?.[1]
  try {
    if (clicked !== undefined) {
      const place = placeOf(step, page)
      const control = place
        .getByRole('link', { name: clicked })
        .or(place.getByRole('button', { name: clicked }))
      await control.first().click({ timeout: 30_000 })
    } else if (step.startsWith('Drag over the last third')) {
      await drag(opened, 2 / 3)
    } else {
      assert.match(step, /^Open the link/)
    }
    if (seen !== undefined) await page.getByText(seen).first().waitFor({ timeout: 30_000 })
  } catch (error) {
    throw new Error(`the page is not as the tutorial says: ${step}\n${error}`)
  }
}

/** The same name may be in several places. */
function placeOf(step: string, page: TestPage['page']): Locator {
  if (step.includes(' in the list of events')) return page.getByRole('list', { name: 'Events' })
  if (step.includes(' among the incidents')) return page.getByRole('table', { name: 'Incidents' })
  return page.locator('body')
}

/** Drags from a share of the histogram's width to its end. */
async function drag({ page }: TestPage, from: number): Promise<void> {
  const plot = page.locator('.u-over')
  await plot.waitFor()
  const box = (await plot.boundingBox()) ?? assert.fail('there is no histogram')
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + box.width * from, y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.9, y, { steps: 4 })
  await page.mouse.move(box.x + box.width - 2, y, { steps: 4 })
  await page.mouse.up()
}

/** The lines that make the shell know the function `event`, and the server. */
function functionOf(scene: string): string {
  return scene.slice(0, scene.indexOf('\n{\n'))
}

function type(commands: string, home: string): void {
  const path = `${dirname(kubectl ?? '')}:/usr/local/bin:/usr/bin:/bin`
  execFileSync('bash', ['-ec', commands], { cwd: home, env: { PATH: path, HOME: home } })
}
