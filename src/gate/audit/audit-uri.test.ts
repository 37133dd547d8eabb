import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { auditUri } from './audit-uri.ts'

const uri = (path: string, search = ''): string =>
  auditUri({ path, query: new URLSearchParams(search) })

const JWT = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'

describe('audit URI', () => {
  test('contains path and query', () => {
    assert.equal(uri('/livez'), '/livez')
    assert.equal(
      uri('/apis/events.k8s.io/v1/events', 'watch=1&fieldSelector=type%3DNormal&limit=500'),
      '/apis/events.k8s.io/v1/events?watch=1&fieldSelector=type%3DNormal&limit=500',
    )
    assert.equal(uri('/a', 'continue=abc.def'), '/a?continue=abc.def')
    assert.equal(uri('/ü b'), '/%C3%BC%20b')
  })

  test('the value of a parameter with the name of a secret is redacted', () => {
    for (const name of [
      'access_token',
      'access%5Ftoken',
      'Token',
      'id_token',
      'client_secret',
      'password',
      'apiKey',
      'key',
      'Authorization',
      'code',
      'sig',
    ]) {
      const shown = uri('/livez', `a=1&${name}=s3cr3t&b=2`)
      assert.ok(!shown.includes('s3cr3t'), shown)
      assert.ok(shown.includes('[redacted]') && shown.endsWith('&b=2'), shown)
    }
    assert.ok(!uri('/a', 'b=1;access_token=s3cr3t;c').includes('s3cr3t'))
  })

  test('text that looks like a token is redacted wherever it is', () => {
    for (const shown of [
      uri(`/a/${JWT}/b`),
      uri('/a', `x=${JWT}`),
      uri('/a', `${JWT}`),
      uri('/a', `x=1;${JWT}`),
      uri('/a', `x=Bearer+${JWT}`),
    ]) {
      assert.ok(!shown.includes('c2lnbmF0dXJl') && !shown.includes('eyJzdWI'), shown)
    }
    assert.ok(!uri('/a', 'q=bearer%20s3cr3t').includes('s3cr3t'))
  })

  test('the URI is limited in length and printable for any request', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (path, search) => {
        const shown = uri(`/${path}`, search)
        assert.match(shown, /^[\x21-\x7e]+$/)
      }),
    )
    assert.ok(uri(`/${'a'.repeat(100_000)}`).length < 9000)
  })

  test('a URI that is crafted to be slow takes less than 500 ms', () => {
    for (const part of ['eyJ', 'eyJ.', 'eyJaaaaaaaa.aaaaaaaa', 'bearer ', ';a=']) {
      const long = part.repeat(20_000)
      const start = process.threadCpuUsage()
      assert.ok(uri(`/${long}`, `a=${long}`).length < 9000)
      assert.ok(auditUri({ path: '/', query: new URLSearchParams({ [long]: long }) }).length < 9000)
      const ms = process.threadCpuUsage(start).user / 1000
      assert.ok(ms < 500, `${part}: ${ms} ms`)
    }
  })
})
