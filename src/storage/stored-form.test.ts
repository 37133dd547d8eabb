import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { StorageError } from './errors.ts'
import { changeIndexMax, versionOfChange } from './resource-version.ts'
import type { NewState, StoredEvent } from './storage.ts'
import {
  BadValue,
  bodyOf,
  openValue,
  prepareValue,
  StoredBody,
  sealValue,
  served,
  trailerAfter,
  uidIn,
  withVersion,
} from './stored-form.ts'
import { decodeTrailer, NO_TRAILER } from './trailer.ts'

const version = versionOfChange(12, 3)
const bytes = (text: string) => Buffer.from(text)
const key = { cluster: 'local', namespace: 'ns', name: 'a' }
const head = '{"w":1,"i":0}\n'
const own = '"metadata":{"name":"a","namespace":"ns"}'

function faultOf(value: string | Buffer, at: typeof key | undefined = key): string | undefined {
  const opened = openValue(Buffer.from(value as string), at)
  return opened instanceof BadValue ? opened.fault : undefined
}

/** Members that only a later release would know. */
function newerMembers(members: object): object {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [`new-${name}`, value]))
}

function servedText(text: string): string {
  const { bytes: whole, versionOffset } = prepareValue(bytes(text))
  return served({ body: whole.subarray(32), versionOffset, version }).toString()
}

describe('stored form', () => {
  test('a sealed value is a header line and the unchanged body', () => {
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

  test('a sealed value opens to the same time, index and object', () => {
    const cases = fc.tuple(
      fc.maxSafeNat(),
      fc.integer({ min: 0, max: changeIndexMax }),
      fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }),
    )
    fc.assert(
      fc.property(cases, ([writtenAtMs, index, rest]) => {
        const metadata = { name: 'a', namespace: 'ns' }
        const body = bytes(JSON.stringify({ metadata, ...newerMembers(rest) }))
        const prepared = prepareValue(body)
        assert.deepEqual(bodyOf(prepared), body)
        const opened = openValue(sealValue(prepared, writtenAtMs, index), key)
        if (opened instanceof BadValue) assert.fail(opened.what)
        const { fields: _, ...read } = opened
        const { versionOffset } = prepared
        const trailer = NO_TRAILER
        assert.deepEqual(read, { key, writtenAtMs, index, body, trailer, versionOffset })
      }),
    )
  })

  test('a body that is not valid JSON to its end is damaged', () => {
    assert.equal(faultOf(`${head}{${own},"reason":"x"}`), undefined)
    for (const body of [
      `{${own},"reason":}`,
      `{${own},"reason":"x"}}`,
      `{${own}"reason":"x"}`,
      '{"metadata":{"name":a}}',
      `{${own},"note":"`,
      ` {${own}}`,
      `{"reason":"x",${own}}`,
    ]) {
      assert.equal(faultOf(head + body), 'damaged', body)
    }
    assert.equal(
      faultOf(Buffer.concat([bytes(`${head}{${own},"note":"`), Buffer.of(0xff), bytes('"}')])),
      'damaged',
    )
  })

  test('a value with a wrong type anywhere, or with the name of another key, is damaged', () => {
    const misfits: readonly [where: string, body: string][] = [
      ['metadata.labels', `{"metadata":{"labels":5,"name":"a","namespace":"ns"}}`],
      ['metadata.labels', `{"metadata":{"labels":{"a":null},"name":"a","namespace":"ns"}}`],
      ['metadata.labels', `{"metadata":{"labels":["a"],"name":"a","namespace":"ns"}}`],
      ['metadata.name', '{"metadata":{}}'],
      ['metadata.name', '{"metadata":{"name":"other","namespace":"ns"}}'],
      ['metadata.namespace', '{"metadata":{"name":"a","namespace":"other"}}'],
      ['metadata.uid', `{"metadata":{"name":"a","namespace":"ns","uid":[]}}`],
      [
        'metadata.resourceVersion',
        `{"metadata":{"resourceVersion":"1","name":"a","namespace":"ns"}}`,
      ],
      [
        'metadata.managedFields',
        `{"metadata":{"name":"a","namespace":"ns","managedFields":[{"time":"x"}]}}`,
      ],
      ['metadata.finalizers', `{"metadata":{"name":"a","namespace":"ns","finalizers":[null]}}`],
      [
        'metadata.generation',
        `{"metadata":{"name":"a","namespace":"ns","generation":9007199254740993}}`,
      ],
      ['metadata', `{${own},"metadata":null}`],
      ['kind', `{${own},"kind":"Event"}`],
      ['apiVersion', `{${own},"apiVersion":"v1"}`],
      ['eventTime', `{${own},"eventTime":"nonsense"}`],
      ['eventTime', `{${own},"eventTime":"2026-13-01T00:00:00.000000Z"}`],
      [
        'deprecatedFirstTimestamp',
        `{${own},"deprecatedFirstTimestamp":"2026-01-01T00:00:00.000000Z"}`,
      ],
      ['series', `{${own},"series":[1]}`],
      ['series.count', `{${own},"series":{"count":2147483648}}`],
      ['deprecatedCount', `{${own},"deprecatedCount":1.5}`],
      ['regarding', `{${own},"regarding":"pod"}`],
      ['regarding.kind', `{${own},"regarding":{"kind":{}}}`],
      ['note', `{${own},"note":{"a":1}}`],
      ['newer', `{${own},"newer":${'['.repeat(300)}${']'.repeat(300)}}`],
    ]
    for (const [where, body] of misfits) {
      const opened = openValue(bytes(head + body), key)
      assert.ok(opened instanceof BadValue && opened.fault === 'damaged', body)
      assert.equal(opened.what, `${where} has a wrong type or value`)
    }
    assert.ok(openValue(bytes(`${head}{${own}}`), undefined) instanceof BadValue)
    assert.equal(faultOf(`{"w":1,"i":999}\n{${own}}`), 'damaged')
    assert.equal(
      faultOf(`${head}{${own},"metadata":{"name":"a","namespace":"ns"},"note":null}`),
      undefined,
    )
  })

  test('served inserts the version into the metadata, whatever follows', () => {
    const rest = fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true })
    fc.assert(
      fc.property(rest, rest, (metadata, after) => {
        const { resourceVersion: _, ...clean } = metadata
        const event = { metadata: clean, ...newerMembers(after) }
        const whole = servedText(JSON.stringify(event))
        // Through JSON, which has no negative zero.
        const expected = JSON.parse(JSON.stringify(event))
        expected.metadata.resourceVersion = '12003'
        assert.deepEqual(JSON.parse(whole), expected)
      }),
    )
  })

  test('an unreadable value without our header is foreign, with it damaged', () => {
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
    ]) {
      assert.equal(faultOf(text), 'foreign', text)
    }
    for (const body of ['', '[]', '{}', '{"metadata"}', '{"metadata":', '{"metadata":null}']) {
      assert.equal(faultOf(head + body), 'damaged', body)
    }
  })

  test('openValue never throws or hangs, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (tail) => {
        openValue(Buffer.concat([bytes(`${head}{${own}`), tail]), key)
        openValue(Buffer.concat([bytes(head), tail]), key)
        openValue(Buffer.from(tail), key)
      }),
    )
  })

  test('prepareValue throws on a body without metadata', () => {
    assert.throws(() => prepareValue(bytes('{}')), TypeError)
  })
})

describe('stored event', () => {
  const stored = (text: string) => {
    const body = bytes(text)
    const key = { cluster: 'local', namespace: 'ns', name: 'n' }
    return new StoredBody({ key, body, versionOffset: 13, version, writtenAtMs: 5 })
  }

  test('the uid is found in the bytes, or not at all', () => {
    const uids: readonly (readonly [string, string | undefined])[] = [
      ['{"metadata":{"name":"a","namespace":"b","uid":"u-1","labels":{"uid":"x"}}}', 'u-1'],
      ['{"metadata":{"uid":"ü"}}', 'ü'],
      ['{"metadata":{"name":"a\\"uid\\":","labels":{"uid":"x"},"uid":"u"}}', 'u'],
      ['{"metadata":{"name":"a","labels":{"uid":"x"}},"regarding":{"uid":"y"}}', undefined],
      ['{"metadata":{"uid":"a\\u0062"}}', undefined],
      ['{"metadata":{ "uid":"u"}}', undefined],
      ['{"metadata":{"name" : "a","uid":"u"}}', undefined],
      ['{"metadata":{}}', undefined],
    ]
    for (const [text, uid] of uids) {
      const found = uidIn(bytes(text))
      assert.equal(found && Buffer.from(found).toString(), uid, text)
    }
  })

  test('fields contain what selectors use; absent fields are empty', () => {
    const { fields } = stored(
      '{"metadata":{"uid":"u","labels":{"a":"b"}},"reason":"R","type":"Normal",' +
        '"reportingController":"c","deprecatedSource":{"component":"s","host":"h"},' +
        '"regarding":{"kind":"Pod","name":"p","uid":"pu"}}',
    )
    assert.deepEqual(fields, {
      uid: 'u',
      labels: { a: 'b' },
      reason: 'R',
      type: 'Normal',
      note: '',
      action: '',
      reportingController: 'c',
      reportingInstance: '',
      sourceComponent: 's',
      sourceHost: 'h',
      regarding: {
        kind: 'Pod',
        namespace: '',
        name: 'p',
        uid: 'pu',
        apiVersion: '',
        resourceVersion: '',
        fieldPath: '',
      },
      related: {
        kind: '',
        namespace: '',
        name: '',
        uid: '',
        apiVersion: '',
        resourceVersion: '',
        fieldPath: '',
      },
      lastSeenMs: 0,
      firstSeenMs: 0,
      occurrences: 1,
    })
    assert.equal(stored('{"metadata":{},"regarding":[]}').fields.regarding.kind, '')
  })

  test('fields throw corrupt on access when the body is not JSON', () => {
    const broken = stored('{"metadata":{},}')
    const isCorrupt = (error: unknown) => error instanceof StorageError && error.kind === 'corrupt'
    assert.throws(() => broken.fields, isCorrupt)
  })

  test('withVersion returns the same state with another version', () => {
    const last = withVersion(stored('{"metadata":{}}'), versionOfChange(13, 0))
    assert.equal(served(last).toString(), '{"metadata":{"resourceVersion":"13000"}}')
    assert.equal(last.writtenAtMs, 5)
  })
})

describe('the marks of an event after a write', () => {
  const marked = (name: string) => ({
    body: bytes(
      `{"metadata":{"name":"a","namespace":"ns","uid":"u"},"regarding":{"kind":"Pod","name":"${name}"}}`,
    ),
  })
  const after = (current: StoredEvent | undefined, state: NewState): StoredEvent =>
    new StoredBody({
      key,
      body: state.body,
      trailer: trailerAfter(key, current, state),
      versionOffset: 13,
      version: versionOfChange(1, 0),
      writtenAtMs: 5,
    })
  const markIn = ({ trailer, fields }: StoredEvent) => decodeTrailer(trailer, fields)
  const byOwner = { kind: 'Workflow', name: 'nightly', rule: 'owner' as const }
  const byEvent = { kind: 'Job', name: 'web', rule: 'event' as const }

  test('stay when nothing new is known, and go when names are right after all', () => {
    const first = after(undefined, { ...marked('web-x'), workload: byEvent, node: 'n1' })
    const second = after(first, marked('web-x'))
    assert.deepEqual(markIn(second), { workload: byEvent, node: 'n1' })
    assert.deepEqual(markIn(after(second, { ...marked('web-x'), workload: 'by-name' })), {
      node: 'n1',
    })
  })

  test('that an owner reference told are not replaced by those of an event', () => {
    const first = after(undefined, { ...marked('web-x'), workload: byOwner })
    const second = after(first, { ...marked('web-x'), workload: byEvent })
    assert.deepEqual(markIn(second), { workload: byOwner })
    const third = after(undefined, { ...marked('web-x'), workload: byEvent })
    assert.deepEqual(markIn(after(third, { ...marked('web-x'), workload: byOwner })), {
      workload: byOwner,
    })
  })

  test('belong to the object, and go with it', () => {
    const first = after(undefined, { ...marked('web-x'), workload: byOwner, node: 'n1' })
    assert.deepEqual(markIn(after(first, marked('other'))), {})
  })
})
