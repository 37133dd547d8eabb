import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { refuseOtherOrigins } from './cross-origin.ts'

type Sent = Readonly<Record<string, string>>

const HOST = { host: 'tidings.example:6443' }
const LINK = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
const FETCH = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }
const OPAQUE = { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'empty' }
const IMAGE = { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
const FRAME = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }

const check = (headers: Sent, method = 'GET'): void => refuseOtherOrigins({ method, headers })

function accepted(headers: Sent, method?: string): void {
  assert.doesNotThrow(() => check(headers, method), JSON.stringify(headers))
}

function refused(headers: Sent, method?: string): void {
  const expected = { reason: 'Forbidden', code: 403, message: /\/ui\// }
  assert.throws(() => check(headers, method), expected, JSON.stringify(headers))
}

describe('requests of other origins', () => {
  test('accepts clients that are not browsers', () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      accepted({}, method)
      accepted(HOST, method)
      accepted({ ':authority': 'tidings.example' }, method)
    }
  })

  test('accepts its own page behind any proxy', () => {
    for (const site of ['same-origin', 'none']) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        accepted({ ...HOST, ...FETCH, 'sec-fetch-site': site }, method)
        const origin = 'https://events.example'
        accepted({ ...HOST, ...FETCH, 'sec-fetch-site': site, origin }, method)
      }
    }
  })

  test('accepts only links to a page from other sites and other hosts of the same site', () => {
    for (const site of ['cross-site', 'same-site', 'same-origin, cross-site', 'unknown', '']) {
      accepted({ ...HOST, ...LINK, 'sec-fetch-site': site })
      for (const kind of [FETCH, OPAQUE, IMAGE, FRAME, {}]) {
        for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS']) {
          refused({ ...HOST, ...kind, 'sec-fetch-site': site }, method)
        }
      }
      // A form.
      refused({ ...HOST, ...LINK, 'sec-fetch-site': site }, 'POST')
      // The headers of the request agree, and still it is not the own page.
      const origin = `https://${HOST.host}`
      refused({ ...HOST, ...FETCH, 'sec-fetch-site': site, origin }, 'POST')
    }
  })

  test('without Sec-Fetch-Site, the origin must be the host of the request', () => {
    accepted({ ...HOST, origin: 'https://tidings.example:6443' }, 'POST')
    accepted({ ...HOST, origin: 'HTTPS://Tidings.Example:6443' }, 'POST')
    accepted({ host: 'tidings.example', origin: 'https://tidings.example' }, 'POST')
    accepted({ host: 'tidings.example:443', origin: 'https://tidings.example' }, 'POST')
    accepted({ host: '[::1]:8001', origin: 'http://[::1]:8001' }, 'POST')
    accepted({ ':authority': 'a.example', host: 'b.example', origin: 'https://a.example' }, 'POST')
    for (const origin of [
      'https://evil.example',
      'https://tidings.example',
      'https://tidings.example:6444',
      'https://tidings.example.evil.example:6443',
      'https://evil.example, https://tidings.example:6443',
      'tidings.example:6443',
      'null',
      'file://',
      '',
    ]) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        refused({ ...HOST, origin }, method)
        refused({ ':authority': HOST.host, origin }, method)
      }
    }
    refused({ origin: 'https://evil.example' }, 'POST')
    refused({ ...HOST, origin: 'https://evil.example', 'x-forwarded-host': 'evil.example' }, 'POST')
    refused({ ':authority': 'a.example', host: 'b.example', origin: 'https://b.example' }, 'POST')
  })
})
