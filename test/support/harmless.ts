import assert from 'node:assert/strict'
import type { TestPage } from './browser.ts'

/** What is wrong with the page that is shown. Runs in the browser. */
const FINDINGS = String.raw`
(() => {
  const found = []
  const add = (what, text) => found.push(what + ': ' + JSON.stringify(text.slice(0, 80)))
  if (window.hacked !== undefined) add('code has run', String(window.hacked))
  const scripts = document.querySelectorAll('script').length
  if (scripts !== 1) add('scripts', String(scripts))
  for (const one of document.querySelectorAll('img, iframe, object, embed, form[action], base, meta[http-equiv]')) add('element', one.outerHTML)
  for (const one of document.querySelectorAll('[href]')) if (!/^https?:$/.test(new URL(one.href?.baseVal ?? one.href, location.href).protocol)) add('link', one.outerHTML)
  for (const one of document.querySelectorAll('*')) for (const { name, value } of one.attributes) if (/^on/i.test(name)) add('handler', name + '=' + value)

  const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/
  const STRONG = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/
  const shownAttributes = ['title', 'aria-label', 'aria-valuetext', 'aria-description', 'placeholder', 'alt', 'label']
  for (const one of document.querySelectorAll('*')) {
    for (const name of shownAttributes) {
      const value = one.getAttribute(name) ?? ''
      // Isolates in pairs are what keeps a text in its place.
      const rest = value.replaceAll(/\u2068[^\u2066-\u2069]*\u2069/g, '')
      if (INVISIBLE.test(rest)) add('invisible in ' + name, value)
      if (STRONG.test(rest)) add('not isolated in ' + name, value)
      if (INVISIBLE.test(value.replaceAll(/[\u2068\u2069]/g, ''))) add('invisible in ' + name, value)
    }
  }
  const isIsolate = (element) => /isolate|plaintext/.test(getComputedStyle(element).unicodeBidi) || element instanceof SVGElement
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const text = node.data
    const parent = node.parentElement
    if (parent.closest('script, style, noscript, textarea') !== null) continue
    if (INVISIBLE.test(text)) add('invisible in text', text)
    if (!STRONG.test(text)) continue
    let around = parent
    while (!isIsolate(around)) around = around.parentElement
    if (around.textContent.trim() !== text.trim()) add('not isolated in text', around.textContent)
  }

  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth > clientWidth) {
    const wide = [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > clientWidth + 1).slice(0, 3)
    add('wider than the window by ' + (scrollWidth - clientWidth), wide.map((one) => one.className).join(' < '))
  }
  return [...new Set(found)].slice(0, 20)
})()
`

/**
 * Fails when a text of an event has become more than a text: code, an element, a link; when a part of
 * it is invisible or may reorder its neighbours; and when the page scrolls sideways.
 */
export async function assertHarmless({ page }: TestPage, where: string): Promise<void> {
  assert.deepEqual(await page.evaluate(FINDINGS), [], where)
}
