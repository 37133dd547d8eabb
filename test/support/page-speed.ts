/** How long the page takes, measured inside it: from what the user does to the paint of the result. */
import type { Page } from 'playwright-core'
import type { TestPage } from './browser.ts'

export interface Taken {
  readonly ms: number
  /** The part until the first byte of the list, and of the histogram: server and network. */
  readonly listMs: number
  readonly barsMs: number
}

/**
 * Runs in the page before its scripts. `tidingsPainted(from)` resolves after the frame in which the
 * list and the bars of requests sent since `from` are painted. Errors are no result: neither a
 * response with one, nor a panel above rows of before.
 */
const METER = `
  performance.setResourceTimingBufferSize(10000)
  const isIdle = () =>
    document.querySelector('.histogram')?.ariaBusy === 'false' &&
    document.querySelector('.histogram canvas') !== null &&
    document.querySelector('ol.events')?.ariaBusy === 'false' &&
    document.querySelector('ol.events > li') !== null &&
    document.querySelector('main [role=alert]') === null
  const asked = (from, pattern) =>
    performance.getEntriesByType('resource').find(
      (entry) =>
        entry.startTime >= from && pattern.test(entry.name) && entry.responseStatus === 200,
    )
  const afterPaint = (then) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = then
    port2.postMessage(0)
  })
  window.tidingsPainted = (from) => new Promise((resolve, reject) => {
    const look = () => {
      if (performance.now() - from > 60000) {
        return reject(new Error('no rows and bars: ' + document.querySelector('main')?.innerText))
      }
      const list = asked(from, /\\/events\\?.*order=newest/)
      const bars = asked(from, /\\/eventhistograms\\?/)
      if (!list || !bars || !isIdle()) return requestAnimationFrame(look)
      afterPaint(() => resolve({
        ms: performance.now() - from,
        listMs: list.responseStart - list.requestStart,
        barsMs: bars.responseStart - bars.requestStart,
      }))
    }
    look()
  })
  window.tidingsGo = (search) => {
    performance.clearResourceTimings()
    const from = performance.now()
    history.pushState(null, '', search)
    dispatchEvent(new PopStateEvent('popstate'))
    return tidingsPainted(from)
  }
  window.tidingsAfter = (type) => new Promise((resolve) => {
    performance.clearResourceTimings()
    addEventListener(type, (event) => resolve(tidingsPainted(event.timeStamp)), {
      capture: true,
      once: true,
    })
  })
`

/** Signs in so that a reload keeps the session, and prepares the meter. */
export async function prepareMeter({ page }: TestPage): Promise<void> {
  await page.addInitScript(METER)
  await page.getByLabel('Keep it in this tab').check()
  await page.getByLabel('Bearer token').fill('viewer')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Views' }).waitFor()
}

/** Measures from the end of the last script or style to the first rows and bars. */
export async function firstPaint(page: Page, url: string): Promise<Taken> {
  await page.goto(url)
  return await page.evaluate<Taken>(`tidingsPainted(0).then((taken) => {
    const assets = performance.getEntriesByType('resource')
      .filter(({ name }) => /\\/ui\\/assets\\/.*\\.(js|css)$/.test(name))
    const loaded = Math.max(...assets.map(({ responseEnd }) => responseEnd))
    return { ...taken, ms: taken.ms - loaded }
  })`)
}

/** Measures from a change of the query, such as a filter, to the paint of its rows and bars. */
export async function changed(page: Page, search: string): Promise<Taken> {
  return await page.evaluate<Taken>(`tidingsGo(${JSON.stringify(search)})`)
}

/** Draws a brush over a part of the histogram; from its end to the paint of what it selects. */
export async function brushed(page: Page, from: number, to: number): Promise<Taken> {
  const box = await page.locator('.histogram .u-over').boundingBox()
  if (box === null) throw new Error('there is no histogram')
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + box.width * from, y)
  await page.mouse.down()
  await page.mouse.move(box.x + (box.width * (from + to)) / 2, y)
  await page.mouse.move(box.x + box.width * to, y)
  const taken = page.evaluate<Taken>(`tidingsAfter('mouseup')`)
  await page.evaluate('0')
  await page.mouse.up()
  return await taken
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** NaN without values. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** `overview: 312 ms (server: list 12 ms, bars 40 ms)`: medians. */
export function said(name: string, taken: readonly Taken[]): string {
  const middle = (of: (one: Taken) => number): string => `${Math.round(median(taken.map(of)))} ms`
  const server = `list ${middle(({ listMs }) => listMs)}, bars ${middle(({ barsMs }) => barsMs)}`
  return `${name}: ${middle(({ ms }) => ms)} (until the first byte: ${server})`
}
