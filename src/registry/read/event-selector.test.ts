import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  coreFieldNames,
  eventFieldNames,
  parseFieldSelector,
} from '../../api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../api/selectors/label-selector.ts'
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
    assert.equal(eventSelector(everyLabel, []), undefined)
  })

  test('matches: every field is compared with its value, and an absent field is empty', () => {
    const event = stored({ sourceComponent: 'kubelet' })
    const values: readonly (readonly [string, string])[] = [
      ['metadata.name', 'e1'],
      ['metadata.namespace', 'ns'],
      ['reason', 'Odd'],
      ['type', 'Normal'],
      ['reportingComponent', 'ctl'],
      ['source', 'kubelet'],
      ['involvedObject.kind', 'Pod'],
      ['involvedObject.namespace', 'ns'],
      ['involvedObject.name', 'web-0'],
      ['involvedObject.uid', 'u1'],
      ['involvedObject.apiVersion', 'v1'],
      ['involvedObject.resourceVersion', '7'],
      ['involvedObject.fieldPath', 'spec'],
    ]
    assert.deepEqual(values.map(([name]) => name).sort(), [...coreFieldNames.keys()].sort())
    const matches = (text: string) =>
      eventSelector(everyLabel, parseFieldSelector(text, coreFieldNames))?.matches(event)
    for (const [name, value] of values) {
      assert.equal(matches(`${name}=${value}`), true, name)
      assert.equal(matches(`${name}!=${value}`), false, name)
      assert.equal(matches(`${name}=`), false, name)
      assert.equal(matches(`${name}!=`), true, name)
    }
  })

  test('matches: the source of an event without one is its controller', () => {
    const selector = eventSelector(everyLabel, parseFieldSelector('source=ctl', coreFieldNames))
    assert.equal(selector?.matches(stored({})), true)
    assert.equal(selector?.matches(stored({ sourceComponent: 'kubelet' })), false)
  })

  test('matches: labels and fields must both match', () => {
    const isMatch = (labels: string, fields: string) =>
      eventSelector(parseLabelSelector(labels), parseFieldSelector(fields))?.matches(stored({}))
    assert.equal(isMatch('n=1', 'reason=Odd'), true)
    assert.equal(isMatch('n=2', 'reason=Odd'), false)
    assert.equal(isMatch('n=1', 'reason=Even'), false)
    assert.equal(isMatch('n=1', ''), true)
    assert.equal(isMatch('n=2', ''), false)
  })

  test('requires: values that must be equal, and an object only when all its parts are required', () => {
    const requires = (text: string) => {
      const found = eventSelector(everyLabel, parseFieldSelector(text))?.requires ?? {}
      return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))
    }
    assert.deepEqual(
      requires('metadata.name=e1,reason=Odd,type=Normal,regarding.uid=u1,reportingController=ctl'),
      { name: 'e1', reason: 'Odd', type: 'Normal', regardingUid: 'u1', reportingController: 'ctl' },
    )
    assert.deepEqual(
      requires('regarding.kind=Pod,regarding.namespace=ns,regarding.name=web-0,reason=a,reason=b'),
      { regarding: { kind: 'Pod', namespace: 'ns', name: 'web-0' }, reason: 'a' },
    )
    assert.deepEqual(requires('regarding.kind=Pod,regarding.name=web-0'), {})
    assert.deepEqual(
      requires([...eventFieldNames.keys()].map((name) => `${name}!=x`).join(',')),
      {},
    )
  })
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
