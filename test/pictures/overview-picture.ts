/** The pictures of the page that the README opens with. */
import { TestBrowser, type TestPage } from '../support/browser.ts'
import { nightStory } from '../support/night-story.ts'
import { PageServer } from '../support/page-server.ts'
import { withText } from './png-chunks.ts'
import { smallPng } from './small-png.ts'

export interface Picture {
  /** The name of the file in docs/images. */
  readonly name: string
  readonly png: Buffer
}

/** 03:12: the time of the tutorial. Always the same, so that pictures differ only where the page does. */
const NOW_MS = Date.UTC(2026, 10, 16, 3, 12)

export const THEMES = ['light', 'dark'] as const

export function pictureName(theme: (typeof THEMES)[number]): string {
  return `page-${theme}.png`
}

/** Takes all pictures, of a server with the events of a night. */
export async function takePictures(): Promise<readonly Picture[]> {
  await using server = await PageServer.start()
  await using browser = await TestBrowser.start()
  await server.write(nightStory(), NOW_MS)
  const pictures: Picture[] = []
  for (const theme of THEMES) {
    await using opened = await browser.open(server.base, {
      path: '?range=6h',
      token: 'viewer',
      nowMs: NOW_MS,
      theme,
      width: 1280,
      height: 760,
    })
    await opened.page.getByText('Multi-Attach error').first().waitFor()
    await opened.settle()
    // Off the row that is where the button was that signed in.
    await opened.page.mouse.move(0, 0)
    const png = smallPng(await opened.page.screenshot())
    pictures.push({ name: pictureName(theme), png: withText(png, await controlsOf(opened)) })
    // The first request has no token yet.
  }
  return pictures
}

/** What a reader of the picture looks for on the page: the names of views, filters and buttons. */
async function controlsOf({ page }: TestPage): Promise<string> {
  const names = await page.evaluate(`
    [...document.querySelectorAll('header a, search :is(input, select, button)')].map((element) =>
      element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent)
  `)
  const trimmed = (names as readonly string[]).map((name) => name.replaceAll(/\W+/g, ' ').trim())
  return [...new Set(trimmed)].filter((name) => name !== '').join(', ')
}
