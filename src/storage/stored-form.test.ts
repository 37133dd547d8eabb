import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { StorageError } from './errors.ts'
import { changeIndexMax, versionOfChange } from './resource-version.ts'
import {
  bodyOf,
  openValue,
  prepareValue,
  StoredBody,
  sealValue,
  served,
  withVersion,
} from './stored-form.ts'

const version = versionOfChange(12, 3)
const bytes = (text: string) => Buffer.from(text)

function servedText(text: string): string {
  const { body, versionOffset } = openValue(bytes(`{"w":1,"i":0}\n${text}`)) ?? assert.fail(text)
  return served({ body, versionOffset, version }).toString()
}

describe('stored form', () => {
  test('a header line, then the body as it is', () => {
    const prepared = prepareValue(bytes('{"metadata":{"name":"a"},"note":"ü"}'))
    const sealed = sealValue(prepared, 1_700_000_000_123, 42)
    assert.equal(
      sealed.toString(),
      '{"w":1700000000123,"i":42}\n{"metadata":{"name":"a"},"note":"ü"}',
    )
    const again = sealValue(prepared, 1_700_000_000_999, 7)
    assert.equal(
      again.toString(),
      '{"w":1700000000999,"i":7}\n{"metadata":{"name":"a"},"note":"ü"}',
    )
  })

  test('what was sealed opens to the same, for every time, index and object', () => {
    const cases = fc.tuple(
      fc.maxSafeNat(),
      fc.integer({ min: 0, max: changeIndexMax }),
      fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }),
    )
    fc.assert(
      fc.property(cases, ([writtenAtMs, index, rest]) => {
        const body = bytes(JSON.stringify({ ...rest, metadata: { name: 'a' } }))
        const prepared = prepareValue(body)
        assert.deepEqual(bodyOf(prepared), body)
        const opened = openValue(sealValue(prepared, writtenAtMs, index))
        assert.ok(opened)
        const { fields: _, ...read } = opened
        const { versionOffset } = prepared
        assert.deepEqual(read, { writtenAtMs, index, body, versionOffset })
      }),
    )
  })

  test('a body that is not JSON to its end does not open', () => {
    const opens = (body: string): boolean =>
      openValue(bytes(`{"w":1,"i":0}\n${body}`)) !== undefined
    assert.ok(opens('{"metadata":{"name":"a"},"reason":"x"}'))
    for (const body of [
      '{"metadata":{"name":"a"},"reason":}',
      '{"metadata":{"name":"a"},"reason":"x"}}',
      '{"metadata":{"name":"a"}"reason":"x"}',
      '{"metadata":{"name":a}}',
    ]) {
      assert.ok(!opens(body), body)
    }
  })

  test('served: the version is in the metadata, whatever is around it', () => {
    const rest = fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true })
    const spaces = fc.constantFrom(undefined, 1, '\t')
    fc.assert(
      fc.property(rest, rest, rest, spaces, (before, metadata, after, indent) => {
        const { resourceVersion: _, ...clean } = metadata
        const event = { ...before, metadata: clean, ...omit(after, 'metadata') }
        const whole = servedText(JSON.stringify(event, null, indent))
        // Through JSON, which knows no negative zero.
        const expected = JSON.parse(JSON.stringify(event))
        expected.metadata.resourceVersion = '12003'
        assert.deepEqual(JSON.parse(whole), expected)
      }),
    )
  })

  test('served: other members by that name, and strings that look like it, are left alone', () => {
    assert.equal(
      servedText('{"a":{"metadata":{}},"b":"\\"metadata\\":{","metadata":{"name":"x"}}'),
      '{"a":{"metadata":{}},"b":"\\"metadata\\":{","metadata":{"resourceVersion":"12003","name":"x"}}',
    )
    assert.equal(servedText('{"metadata":{ }}'), '{"metadata":{ "resourceVersion":"12003"}}')
  })

  test('what is not ours does not open', () => {
    const head = '{"w":1,"i":0}\n'
    for (const text of [
      '',
      '{',
      'k8s\0\n',
      '{"metadata":{}}',
      '{"w":1,"i":0}',
      '{"w":1,"i":0}{"metadata":{}}',
      '{"w":,"i":0}\n{"metadata":{}}',
      '{"w":99999999999999999999,"i":0}\n{"metadata":{}}',
      '{"w":-1,"i":0}\n{"metadata":{}}',
      head,
      `${head}[]`,
      `${head}{}`,
      `${head}{"metadata"}`,
      `${head}{"metadata":`,
      `${head}{"metadata":null}`,
      `${head}{"metadata":[]}`,
      `${head}{"a":{"metadata":{}}}`,
      `${head}{"a":"\\`,
      `${head}{"a":[[[`,
      `${head}{"metadata":{}`.slice(0, -1),
    ]) {
      assert.equal(openValue(bytes(text)), undefined, text)
    }
  })

  test('no bytes whatever make it throw or hang', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (tail) => {
        openValue(Buffer.concat([bytes('{"w":1,"i":0}\n{'), tail]))
        openValue(Buffer.from(tail))
      }),
    )
  })

  test('prepare: a body without metadata is a mistake of the caller', () => {
    assert.throws(() => prepareValue(bytes('{}')), TypeError)
  })
})

describe('stored event', () => {
  const stored = (text: string) => {
    const body = bytes(text)
    const key = { namespace: 'ns', name: 'n' }
    return new StoredBody({ key, body, versionOffset: 13, version, writtenAtMs: 5 })
  }

  test('fields: as selectors see them, absent ones empty', () => {
    const { fields } = stored(
      '{"metadata":{"uid":"u","labels":{"a":"b"}},"reason":"R","type":"Normal",' +
        '"reportingController":"c","deprecatedSource":{"component":"s"},' +
        '"regarding":{"kind":"Pod","name":"p","uid":"pu"}}',
    )
    assert.deepEqual(fields, {
      uid: 'u',
      labels: { a: 'b' },
      reason: 'R',
      type: 'Normal',
      reportingController: 'c',
      sourceComponent: 's',
      regarding: {
        kind: 'Pod',
        namespace: '',
        name: 'p',
        uid: 'pu',
        apiVersion: '',
        resourceVersion: '',
        fieldPath: '',
      },
    })
    assert.equal(stored('{"metadata":null,"regarding":[]}').fields.regarding.kind, '')
  })

  test('fields: what is not JSON is corrupt, once somebody looks', () => {
    const broken = stored('{"metadata":{},}')
    const isCorrupt = (error: unknown) => error instanceof StorageError && error.kind === 'corrupt'
    assert.throws(() => broken.fields, isCorrupt)
  })

  test('a delete leaves the same state under its own version', () => {
    const last = withVersion(stored('{"metadata":{}}'), versionOfChange(13, 0))
    assert.equal(served(last).toString(), '{"metadata":{"resourceVersion":"13000"}}')
    assert.equal(last.writtenAtMs, 5)
  })
})

function omit(object: object, name: string): object {
  return Object.fromEntries(Object.entries(object).filter(([key]) => key !== name))
}
