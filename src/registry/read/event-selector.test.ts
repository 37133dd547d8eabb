import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  coreFieldNames,
  eventFieldNames,
  parseFieldSelector,
} from '../../api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../api/selectors/label-selector.ts'
import { parseShardSelector } from '../../api/selectors/shard-selector.ts'
import { type EventFields, fieldsIn } from '../../storage/event-fields.ts'
import { beginning } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { eventSelector, namedBy } from './event-selector.ts'

const everyLabel = parseLabelSelector('')

function stored(fields: Partial<EventFields>): StoredEvent {
  const body = Buffer.from('{}')
  return {
    key: { cluster: 'local', namespace: 'ns', name: 'e1' },
    body,
    versionOffset: 1,
    version: beginning,
    writtenAtMs: 0,
    fields: {
      ...fieldsIn({}),
      uid: 'own-uid',
      labels: { n: '1' },
      reason: 'Odd',
      type: 'Normal',
      reportingController: 'ctl',
      sourceComponent: '',
      regarding: {
        kind: 'Pod',
        namespace: 'ns',
        name: 'web-0',
        uid: 'u1',
        apiVersion: 'v1',
        resourceVersion: '7',
        fieldPath: 'spec',
      },
      ...fields,
    },
  }
}

describe('eventSelector', () => {
  test('without requirements there is no selector', () => {
    assert.equal(eventSelector(everyLabel, [], 0), undefined)
  })

  test('matches: every field is compared with its value, and an absent field is empty', () => {
    const related = {
      kind: 'Node',
      namespace: 'other',
      name: 'n1',
      uid: 'u2',
      apiVersion: 'v2',
      resourceVersion: '9',
      fieldPath: 'status',
    }
    const fields = { sourceComponent: 'kubelet', action: 'Binding', reportingInstance: 'ctl-0' }
    const event = stored({ ...fields, related })
    const values: readonly (readonly [string, string])[] = [
      ['metadata.name', 'e1'],
      ['metadata.namespace', 'ns'],
      ['reason', 'Odd'],
      ['type', 'Normal'],
      ['reportingComponent', 'ctl'],
      ['controller', 'ctl'],
      ['reportingInstance', 'ctl-0'],
      ['action', 'Binding'],
      ['related.kind', 'Node'],
      ['related.namespace', 'other'],
      ['related.name', 'n1'],
      ['related.uid', 'u2'],
      ['related.apiVersion', 'v2'],
      ['related.resourceVersion', '9'],
      ['related.fieldPath', 'status'],
      ['source', 'kubelet'],
      ['involvedObject.kind', 'Pod'],
      ['involvedObject.namespace', 'ns'],
      ['involvedObject.name', 'web-0'],
      ['involvedObject.uid', 'u1'],
      ['involvedObject.apiVersion', 'v1'],
      ['involvedObject.resourceVersion', '7'],
      ['involvedObject.fieldPath', 'spec'],
    ]
    const compared = [...coreFieldNames.keys()].filter(
      (name) => !['since', 'until', 'mentions', 'text'].includes(name),
    )
    assert.deepEqual(values.map(([name]) => name).sort(), compared.sort())
    const matches = (text: string) =>
      eventSelector(everyLabel, parseFieldSelector(text, coreFieldNames), 0)?.matches(event)
    for (const [name, value] of values) {
      assert.equal(matches(`${name}=${value}`), true, name)
      assert.equal(matches(`${name}!=${value}`), false, name)
      assert.equal(matches(`${name}=`), false, name)
      assert.equal(matches(`${name}!=`), true, name)
    }
  })

  test('matches: the source of an event without one is its controller', () => {
    const selector = eventSelector(everyLabel, parseFieldSelector('source=ctl', coreFieldNames), 0)
    assert.equal(selector?.matches(stored({})), true)
    assert.equal(selector?.matches(stored({ sourceComponent: 'kubelet' })), false)
  })

  test('matches: the controller of an event that names none is its source', () => {
    for (const names of [coreFieldNames, eventFieldNames]) {
      const selector = eventSelector(everyLabel, parseFieldSelector('controller=ctl', names), 0)
      const matches = (reportingController: string, sourceComponent: string) =>
        selector?.matches(stored({ reportingController, sourceComponent }))
      assert.equal(matches('ctl', 'other'), true)
      assert.equal(matches('', 'ctl'), true)
      assert.equal(matches('other', 'ctl'), false)
      assert.equal(selector?.requires?.isAll, true)
    }
  })

  test('matches: labels and fields must both match', () => {
    const isMatch = (labels: string, fields: string) =>
      eventSelector(parseLabelSelector(labels), parseFieldSelector(fields), 0)?.matches(stored({}))
    assert.equal(isMatch('n=1', 'reason=Odd'), true)
    assert.equal(isMatch('n=2', 'reason=Odd'), false)
    assert.equal(isMatch('n=1', 'reason=Even'), false)
    assert.equal(isMatch('n=1', ''), true)
    assert.equal(isMatch('n=2', ''), false)
  })

  test('requires: values that must be equal, and an object only when all its parts are required', () => {
    const requires = (text: string) => {
      const found = eventSelector(everyLabel, parseFieldSelector(text), 0)?.requires ?? {}
      return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))
    }
    const isAll = false
    assert.deepEqual(
      requires('metadata.name=e1,reason=Odd,type=Normal,regarding.uid=u1,reportingController=ctl'),
      {
        name: 'e1',
        reason: 'Odd',
        type: 'Normal',
        regardingUid: 'u1',
        reportingController: 'ctl',
        isAll,
      },
    )
    assert.deepEqual(
      requires('regarding.kind=Pod,regarding.namespace=ns,regarding.name=web-0,reason=a,reason=b'),
      {
        regarding: { kind: 'Pod', namespace: 'ns', name: 'web-0' },
        kind: 'Pod',
        reason: 'a',
        isAll,
      },
    )
    assert.deepEqual(requires('regarding.kind=Pod,regarding.name=web-0'), { kind: 'Pod', isAll })
    const names = [...eventFieldNames.keys()].filter((name) => !['since', 'until'].includes(name))
    assert.deepEqual(requires(names.map((name) => `${name}!=Pod/x`).join(',')), {
      not: {
        kind: 'Pod/x',
        reason: 'Pod/x',
        type: 'Pod/x',
        reportingController: 'Pod/x',
        controller: 'Pod/x',
      },
      texts: [{ text: 'pod/x', isIn: false }],
      isAll,
    })
  })

  test('requires: an index knows all of it when each value is compared once, times and texts', () => {
    const isAll = (text: string, labels = '') =>
      eventSelector(parseLabelSelector(labels), parseFieldSelector(text), 0)?.requires?.isAll
    assert.equal(isAll('type=Warning,reason!=a,reason=b,since=20m,until=5m,since=1h'), true)
    assert.equal(isAll('type=Warning,text=a,text!=b'), true)
    for (const text of ['type=a,type=b', 'type!=a,type!=b', 'mentions=u', 'action=a']) {
      assert.equal(isAll(`reason=a,${text}`), false, text)
    }
    assert.equal(isAll('type=Warning', 'a=b'), false)
  })

  const nowMs = Date.parse('2026-11-16T12:00:00Z')
  const select = (text: string, event: StoredEvent) =>
    eventSelector(everyLabel, parseFieldSelector(text), nowMs)?.matches(event)

  test('since is inside of the span, until is outside', () => {
    const event = stored({ lastSeenMs: nowMs - 60_000 })
    for (const [text, isMatch] of [
      ['since=1m', true],
      ['since=59s', false],
      ['until=1m', false],
      ['until=59s', true],
      ['since=2026-11-16T11:59:00Z', true],
      ['since=2026-11-16T12:59:00.001+01:00', false],
      ['until=2026-11-16T11:59:00.001Z', true],
      ['since=2d,until=1s', true],
      ['since=1w1d', true],
    ] as const) {
      assert.equal(select(text, event), isMatch, text)
    }
  })

  test('a malformed time, mention or operator is a 400 that names it', () => {
    for (const [text, message] of [
      ['since=yesterday', /^since: "yesterday" is neither a duration/],
      ['until=2026-13-01T00:00:00Z', /^until: .* is not an RFC 3339 time/],
      ['since=-5m', /^since: "-5m" is negative/],
      ['since!=5m', /^since is a bound/],
      ['mentions=', /^mentions: ""/],
      ['mentions=Pod/', /^mentions: /],
      ['mentions=Pod/ns/web-0', /^mentions: /],
      ['text=a,text=b,text!=c,text=d,text=e', /^a field selector has at most 4 texts/],
      [`text=${'a'.repeat(257)}`, /^text: a text has at most 256 characters/],
    ] as const) {
      assert.throws(() => select(text, stored({})), { code: 400, message }, text)
    }
  })

  test('mentions finds the regarded and the related object, by name or uid', () => {
    const related = { ...fieldsIn({}).related, kind: 'Node', name: 'n1', uid: 'u2' }
    const event = stored({ related })
    for (const text of [
      'Pod/web-0',
      'pod/web-0',
      'pods/web-0',
      'po/web-0',
      'node/n1',
      'u1',
      'u2',
    ]) {
      assert.equal(select(`mentions=${text}`, event), true, text)
      assert.equal(select(`mentions!=${text}`, event), false, text)
    }
    for (const text of ['Pod/n1', 'Node/web-0', 'web-0', 'u3']) {
      assert.equal(select(`mentions=${text}`, event), false, text)
    }
  })

  test('text finds a part of the note or the reason, without case', () => {
    const body = Buffer.from(JSON.stringify({ note: 'Back-off "pulling" IMAGE Ä', reason: 'Odd' }))
    const event = { ...stored({ note: 'Back-off "pulling" IMAGE Ä' }), body }
    for (const [text, isMatch] of [
      ['image', true],
      ['back-OFF', true],
      ['oDD', true],
      ['"Pulling"', true],
      ['ä', true],
      ['note', false],
      ['pulling image', false],
    ] as const) {
      assert.equal(select(`text=${text}`, event), isMatch, text)
      assert.equal(select(`text!=${text}`, event), !isMatch, text)
    }
  })
})

test('a shard is compared with each event, whatever an index knows', () => {
  const shards = parseShardSelector(
    "shardRange(object.metadata.namespace, '0x0000000000000000', '0x0000000000000001')",
  )
  const selector = eventSelector(everyLabel, parseFieldSelector('reason=Odd'), 0, shards)
  assert.equal(selector?.requires?.reason, 'Odd')
  assert.equal(selector?.requires?.isAll, false)
  assert.equal(selector?.matches(stored({})), false)
})

test('namedBy: the name and namespace that all matches have', () => {
  const none = { name: undefined, namespace: undefined, isImpossible: false }
  const cases: readonly (readonly [string, Partial<ReturnType<typeof namedBy>>])[] = [
    ['', {}],
    ['reason=a', {}],
    ['metadata.name!=a', {}],
    ['metadata.name=a', { name: 'a' }],
    ['metadata.name=a,metadata.namespace=b', { name: 'a', namespace: 'b' }],
    ['metadata.name=a,metadata.name=a', { name: 'a' }],
    ['metadata.name=a,metadata.name!=b', { name: 'a' }],
    ['metadata.name=a,metadata.name=b', { name: 'a', isImpossible: true }],
    ['metadata.name=a,metadata.name!=a', { name: 'a', isImpossible: true }],
    ['metadata.namespace=a,metadata.namespace=b', { namespace: 'a', isImpossible: true }],
    ['metadata.name=a,metadata.namespace!=a', { name: 'a' }],
    ['metadata.name=', { name: '', isImpossible: true }],
    ['metadata.namespace=a/b', { namespace: 'a/b', isImpossible: true }],
  ]
  for (const [text, expected] of cases) {
    assert.deepEqual(namedBy(parseFieldSelector(text)), { ...none, ...expected }, text)
  }
})
