import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createLog, type Log, type LogFields } from './log.ts'
import { isSecretName } from './log-fields.ts'

// All code units, lone surrogates too. (The generator of fast-check takes a second to set up.)
const anyText = fc
  .array(fc.integer({ min: 0, max: 0xffff }))
  .map((codes) => String.fromCharCode(...codes))

// In local time, so that the expected text is the same in every time zone.
const ts = new Date(2026, 10, 5, 0, 18, 45, 123).getTime() + 0.456

function record(format: 'text' | 'json', verbosity = 0): { log: Log; lines: string[] } {
  const lines: string[] = []
  const sink = { write: (line: string) => void lines.push(line) }
  const log = createLog({ format, verbosity, sink, pid: 4242, wallTime: () => ts })
  return { log, lines }
}

function printed(format: 'text' | 'json', msg: string, fields?: LogFields): string {
  const { log, lines } = record(format)
  log.info(msg, fields)
  assert.equal(lines.length, 1)
  return lines[0] ?? ''
}

const head = '1105 00:18:45.123456    4242'

describe('log as text', () => {
  test('prints the header of klog, then the message, then the fields', () => {
    const { log, lines } = record('text')
    const http = log.child({ logger: 'http' })
    http.info('Serving securely', { address: '127.0.0.1:6443', port: 6443, tls: true })
    assert.deepEqual(lines, [
      `I${head} http] "Serving securely" address="127.0.0.1:6443" port=6443 tls=true\n`,
    ])
  })

  test('prints the letter of warnings and errors, and err as the first field', () => {
    const { log, lines } = record('text')
    log.warn('Slow')
    log.error('Failed', { path: '/x', err: new Error('outer', { cause: new Error('inner') }) })
    assert.deepEqual(lines, [
      `W${head} main] "Slow"\n`,
      `E${head} main] "Failed" err="outer: inner" path="/x"\n`,
    ])
  })

  test('prints a message that a cause repeats once', () => {
    const innermost = new Error('connect ECONNREFUSED')
    const inner = new Error('cannot connect: connect ECONNREFUSED', { cause: innermost })
    const same = new Error('not connected: cannot connect: connect ECONNREFUSED', { cause: inner })
    const err = new Error(same.message, { cause: same })
    assert.match(
      printed('text', 'Failed', { err }),
      / err="not connected: cannot connect: connect ECONNREFUSED"\n$/,
    )
    const endless = new Error('round')
    endless.cause = endless
    assert.match(printed('text', 'Failed', { err: endless }), / err="round"\n$/)
  })

  test('does not let a client forge a log line or control a terminal', () => {
    const line = printed('text', 'Request', {
      path: '/a\nE1105 fake] "x"\r\u001b[2J\u009b31m\u2028\u202e',
    })
    assert.equal(
      line,
      `I${head} main] "Request" path="/a\\nE1105 fake] \\"x\\"\\r\\u001b[2J\\u009b31m\\u2028\\u202e"\n`,
    )
  })

  test('quotes a field name with special characters', () => {
    assert.equal(printed('text', 'm', { 'a b\n="': 1 }), `I${head} main] "m" "a b\\n=\\""=1\n`)
  })

  test('prints lists and objects as JSON', () => {
    const line = printed('text', 'm', { list: ['a', 1, undefined], nested: { a: { b: null } } })
    assert.equal(line, `I${head} main] "m" list=["a",1,null] nested={"a":{"b":null}}\n`)
  })
})

describe('log as JSON', () => {
  test('has the keys of Kubernetes logs', () => {
    const { log, lines } = record('json', 2)
    const http = log.child({ logger: 'http', replica: 1 })
    http.info('Serving', { port: 6443 })
    http.v(2, 'Detail')
    http.warn('Slow')
    http.error('Failed', { err: new Error('no'), path: '/x' })
    const start = `{"ts":${ts.toFixed(3)},"logger":"http"`
    assert.deepEqual(lines, [
      `${start},"msg":"Serving","v":0,"replica":1,"port":6443}\n`,
      `${start},"msg":"Detail","v":2,"replica":1}\n`,
      `${start},"msg":"Slow","severity":"warning","v":0,"replica":1}\n`,
      `${start},"msg":"Failed","severity":"error","replica":1,"err":"no","path":"/x"}\n`,
    ])
  })

  test('does not let a field replace a part of the line', () => {
    const line = JSON.parse(
      printed('json', 'm', { msg: 'x', ts: 1, v: 9, severity: 's', logger: 'l' }),
    )
    assert.deepEqual(line, {
      ...{ ts, logger: 'main', msg: 'm', v: 0 },
      ...{ msg_: 'x', ts_: 1, v_: 9, severity_: 's', logger_: 'l' },
    })
  })

  test('escapes control characters that JSON leaves unescaped, which parse to the same text', () => {
    const path = 'a\u009b\u2028\u202e\u007fé'
    const line = printed('json', 'm', { path })
    assert.ok(line.includes('a\\u009b\\u2028\\u202e\\u007fé'))
    assert.equal(JSON.parse(line).path, path)
  })
})

describe('verbosity', () => {
  test('prints messages up to the configured verbosity', () => {
    const { log, lines } = record('text', 2)
    for (const level of [0, 1, 2, 3, 10]) log.v(level, `at ${level}`)
    assert.equal(lines.length, 3)
    assert.ok(log.enabled(2))
    assert.ok(!log.enabled(3))
    assert.ok(!log.child({ a: 1 }).enabled(3))
  })
})

describe('log fields', () => {
  test('redact secrets by name, at any depth', () => {
    const line = printed('json', 'm', {
      Authorization: 'Basic eDp5',
      headers: { cookie: 'a=b', 'x-api-key': 'k', accept: '*/*' },
      tls: { key: Buffer.from('k'), cert: 'c' },
      list: [{ password: 'p' }],
    })
    const { headers, tls, list, Authorization } = JSON.parse(line)
    assert.equal(Authorization, '[redacted]')
    assert.deepEqual(headers, { cookie: '[redacted]', 'x-api-key': '[redacted]', accept: '*/*' })
    assert.deepEqual(tls, { key: '[redacted]', cert: 'c' })
    assert.deepEqual(list, [{ password: '[redacted]' }])
  })

  test('redact secrets in a child log', () => {
    const { log, lines } = record('text')
    log.child({ sessionToken: 'x' }).info('m')
    assert.equal(lines[0], `I${head} main] "m" sessionToken="[redacted]"\n`)
  })

  test('redact recognisable secrets inside texts', () => {
    const pem = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----'
    const line = JSON.parse(
      printed('json', 'm', {
        err: new Error('refused: Bearer abcdefgh.ijkl'),
        url: 'https://root:hunter2@etcd:2379/x',
        pem,
      }),
    )
    assert.equal(line.err, 'refused: Bearer [redacted]')
    assert.equal(line.url, 'https://[redacted]@etcd:2379/x')
    assert.ok(!line.pem.includes('MHcCAQ'))
  })

  for (const name of [
    'key',
    'apiKey',
    'private_key',
    'id_token',
    'Set-Cookie',
    'clientSecret',
    'TLSKey',
  ]) {
    test(`treat a field named ${name} as a secret`, () => {
      assert.ok(isSecretName(name))
    })
  }

  for (const name of [
    'monkey',
    'etcdKey',
    'publicKey',
    'keys',
    'tlsPrivateKeyFile',
    'secretName',
    'tokenCount',
  ]) {
    test(`do not treat a field named ${name} as a secret`, () => {
      assert.ok(!isSecretName(name))
    })
  }

  test('truncate a long value and append its original length', () => {
    const { path } = JSON.parse(printed('json', 'm', { path: '/'.repeat(100_000) }))
    assert.equal(path, `${'/'.repeat(2048)}…[100000 characters]`)
  })

  test('do not exceed the maximum length of a line, whatever their number and size', () => {
    const row = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`f${i}`, 'x'.repeat(5000)]),
    )
    const line = printed('json', 'm'.repeat(5000), { ...row, nested: [row, [row, [row]]] })
    assert.ok(line.length < 24 * 1024, `${line.length} characters`)
  })

  test('print values of unusual types', () => {
    const loop: Record<string, unknown> = {}
    loop['loop'] = loop
    const line = printed('json', 'm', {
      ...{ big: 1n, nan: Number.NaN, symbol: Symbol('s'), nothing: undefined, fn: () => 1 },
      ...{
        when: new Date(0),
        bytes: new Uint8Array(3),
        map: new Map([['a', 1]]),
        set: new Set([1]),
      },
      loop,
      err: 'text',
    })
    const { ts: _, logger: __, msg: ___, v: ____, ...fields } = JSON.parse(line)
    assert.deepEqual(fields, {
      ...{ big: '1', nan: 'NaN', symbol: 'Symbol(s)', when: '1970-01-01T00:00:00.000Z' },
      ...{ bytes: '[3 bytes]', map: { a: 1 }, set: [1], err: 'text' },
      loop: { loop: { loop: { loop: { loop: '[nested too deeply]' } } } },
    })
  })

  test('are replaced by a note when a value is unreadable, and the line is still printed', () => {
    const trap = {
      get value(): string {
        throw new Error('no')
      },
    }
    assert.equal(printed('text', 'm', trap), `I${head} main] "m" fields="[unreadable]"\n`)
  })

  test('make one line without control characters, and valid JSON', () => {
    const fields = fc.dictionary(anyText, fc.anything(), {
      noNullPrototype: true,
    })
    fc.assert(
      fc.property(anyText, fields, (msg, values) => {
        for (const format of ['text', 'json'] as const) {
          const line = printed(format, msg, values)
          // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for them
          assert.match(line, /^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*\n$/)
        }
        JSON.parse(printed('json', msg, values))
      }),
    )
  })
})
