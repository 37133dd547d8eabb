import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  coreFieldNames,
  eventFieldNames,
  parseFieldSelector,
} from '../../api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../api/selectors/label-selector.ts'
import { parseShardSelector } from '../../api/selectors/shard-selector.ts'
import { exactly, patternsText } from '../../api/selectors/value-pattern.ts'
import { patternId, patternOf } from '../../incidents/pattern.ts'
import { type EventFields, fieldsIn } from '../../storage/event-fields.ts'
import { beginning } from '../../storage/resource-version.ts'
import type { StoredEvent } from '../../storage/storage.ts'
import { encodeTrailer } from '../../storage/trailer.ts'
import { eventSelector, namedBy } from './event-selector.ts'

const everyLabel = parseLabelSelector('')
const UID = '0b9d3a51-7a6c-4c4f-9a31-5c6a0d4b1e2f'

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

function podOf(name: string): Partial<EventFields> {
  return { regarding: { ...stored({}).fields.regarding, name } }
}

function placedOn(node: string): Buffer {
  return encodeTrailer({ node }, stored({}).fields)
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
    const event = { ...stored({ ...fields, related }), trailer: placedOn('n1') }
    const values: readonly (readonly [string, string])[] = [
      ['metadata.name', 'e1'],
      ['metadata.namespace', 'ns'],
      ['reason', 'Odd'],
      ['type', 'Normal'],
      ['reportingComponent', 'ctl'],
      ['controller', 'ctl'],
      ['node', 'n1'],
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
      ['name', 'web-0'],
      ['involvedObject.uid', 'u1'],
      ['involvedObject.apiVersion', 'v1'],
      ['involvedObject.resourceVersion', '7'],
      ['involvedObject.fieldPath', 'spec'],
    ]
    const compared = [...coreFieldNames.keys()].filter(
      (name) =>
        !['since', 'until', 'mentions', 'text', 'search', 'workload', 'pattern'].includes(name),
    )
    assert.deepEqual(values.map(([name]) => name).sort(), compared.sort())
    const matches = (text: string) =>
      eventSelector(everyLabel, parseFieldSelector(text, coreFieldNames), 0)?.matches(event)
    for (const [name, value] of values) {
      assert.equal(matches(`${name}=${value}`), true, name)
      assert.equal(matches(`${name}!=${value}`), false, name)
      assert.equal(matches(`${name}=`), false, name)
      assert.equal(matches(`${name}!=`), true, name)
      assert.equal(matches(`${name}=none|${value}`), true, name)
      assert.equal(matches(`${name}!=none|${value}`), false, name)
      assert.equal(matches(`${name}=none|absent`), false, name)
      assert.equal(matches(`${name}=${value.slice(0, 1)}*`), true, name)
      assert.equal(matches(`${name}!=none|${value}*`), false, name)
      assert.equal(matches(`${name}=${value}x*`), false, name)
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

  const requires = (text: string): Readonly<Record<string, unknown>> => {
    const found = eventSelector(everyLabel, parseFieldSelector(text), 0)?.requires ?? {}
    const { values, fields: _, isOfFields: __, ...others } = found
    const known = Object.entries(others).filter(([, value]) => value !== undefined)
    const texts = values?.map((one) => `${one.field}${one.operator}${patternsText(one.patterns)}`)
    return { ...Object.fromEntries(known), ...(texts && { values: texts }) }
  }

  test('requires: keys, objects and values, as far as an index knows them', () => {
    const isAll = false
    assert.deepEqual(requires('metadata.name=e1|e-*,metadata.namespace=ns'), {
      names: [...exactly('e1'), { text: 'e-', isPrefix: true }],
      namespaces: exactly('ns'),
      isAll,
    })
    assert.deepEqual(requires('regarding.uid=u1|u2,reportingController=ctl,reason=a|b*'), {
      regardingUids: ['u1', 'u2'],
      values: ['reason=a|b*', 'reportingController=ctl'],
      isAll,
    })
    const pod = { kind: 'Pod', name: 'a' }
    assert.deepEqual(requires('regarding.kind=Pod|Node,regarding.name=a,reason=a*,reason=ab'), {
      regarding: [pod, { kind: 'Node', name: 'a' }],
      values: ['reason=ab', 'regarding.kind=Pod|Node'],
      isAll,
    })
    const kind = 'regarding.kind=Pod'
    assert.deepEqual(requires(`${kind},name=a*`), { values: [kind], fragments: [['a']], isAll })
    assert.deepEqual(requires(`mentions=Pod/a|${UID}`), {
      mentions: [{ kind: 'pod', name: 'a' }, { uid: UID }],
      isAll,
    })
    assert.deepEqual(requires('mentions=Pod/a*'), { fragments: [['a']], isAll })
    const names = [...eventFieldNames.keys()].filter(
      (name) => !['since', 'until', 'pattern', 'node'].includes(name),
    )
    assert.deepEqual(requires(names.map((name) => `${name}!=Pod/x`).join(',')), {
      values: ['controller', 'reason', 'regarding.kind', 'reportingController', 'type'].map(
        (name) => `${name}!=Pod/x`,
      ),
      texts: [
        { texts: ['pod/x'], isIn: false, isAnywhere: true },
        { texts: ['pod/x'], isIn: false, isAnywhere: false },
      ],
      isAll,
    })
  })

  test('matches: a workload is what the object belongs to, or is', () => {
    const deployed = { ...podOf('web-7d9f8b6c5-x2k4q'), note: 'Killing 3 pods' }
    const matches = (text: string, event = stored(deployed)) =>
      eventSelector(everyLabel, parseFieldSelector(text), 0)?.matches(event)
    assert.equal(matches('workload=Deployment/web'), true)
    assert.equal(matches('workload=deploy/web'), true)
    assert.equal(matches('workload=Deployment/we*'), true)
    assert.equal(matches('workload!=Deployment/web'), false)
    assert.equal(matches('workload=Pod/web-7d9f8b6c5-x2k4q'), true)
    assert.equal(matches('workload=StatefulSet/web|Deployment/web'), true)
    assert.equal(matches('workload=Deployment/other'), false)
    assert.equal(matches('workload=deployment.apps/web'), true)
    assert.equal(matches('workload=Deployment/web,workload=Pod/web-7d9f8b6c5-x2k4q'), true)
    assert.equal(matches('workload=deploy/web,workload=Deployment/web'), true)
    const told = { kind: 'Rollout', name: 'web', rule: 'owner' as const }
    const trailer = encodeTrailer({ workload: told }, stored(deployed).fields)
    assert.equal(matches('workload=Rollout/web', { ...stored(deployed), trailer }), true)
    assert.equal(matches('workload=Deployment/web', { ...stored(deployed), trailer }), false)
    const id = patternId(patternOf('Killing 7 pods'))
    assert.equal(matches(`pattern=${id}`), true)
    assert.equal(matches(`pattern!=${id}`), false)
  })

  test('requires: workloads, nodes and patterns are known to an index', () => {
    assert.deepEqual(requires('workload=deploy/web|Pod/a,node=n1|n2,pattern=0000000a'), {
      workloads: [
        { kind: 'deployment', name: 'web' },
        { kind: 'pod', name: 'a' },
      ],
      nodes: ['n1', 'n2'],
      notePatterns: [10],
      isAll: false,
    })
    assert.deepEqual(requires('workload=Deployment/web*,node=n*'), { isAll: false })
  })

  test('a workload without a kind, and a pattern that is no id, are a 400 that says what to write', () => {
    const select = (text: string) => eventSelector(everyLabel, parseFieldSelector(text), 0)
    assert.throws(() => select('workload=checkout'), {
      code: 400,
      message: /workload: "checkout": write a kind and a name, such as Deployment\/checkout/,
    })
    assert.throws(() => select('pattern=BackOff'), { code: 400, message: /pattern: "BackOff"/ })
  })

  test('requires: what the body must contain, unless JSON may write it in another way', () => {
    const fragments = (text: string) => requires(text)['fragments']
    assert.deepEqual(fragments('action=a b,related.name=c-*|d'), [['a b'], ['c-', 'd']])
    for (const text of ['action=', 'action!=a', 'action=a"', 'action=ä', 'action=1|2|3|4|5']) {
      assert.equal(fragments(text), undefined, text)
    }
  })

  test('requires: an index knows all of it when only values, times and texts are required', () => {
    const isAll = (text: string, labels = '') =>
      eventSelector(parseLabelSelector(labels), parseFieldSelector(text), 0)?.requires?.isAll
    assert.equal(isAll('type=Warning,reason!=a,reason=b,since=20m,until=5m,since=1h'), true)
    assert.equal(isAll('type=Warning,text=a,text!=b,search=c|d'), true)
    assert.equal(isAll('type=a|b,type=b*,type!=a,type!=b'), true)
    assert.equal(isAll(`reason=${'a'.repeat(200)}*`), true)
    for (const text of [`mentions=${UID}`, 'action=a', `type=${'a'.repeat(201)}*`]) {
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
      [
        'mentions=checkout',
        /^mentions: "checkout": write a kind and a name, such as Pod\/checkout, or a uid$/,
      ],
      ['mentions!=checkout-*', /such as Pod\/checkout-\*, or a uid$/],
      ['mentions=Pod/*', /^mentions: "Pod\/\*": write a kind and a name, such as Pod\/web-0,/],
      [`mentions=${'h'.repeat(36)}`, /^mentions: /],
      ['controller=a,controller=b', /^controller=a,controller=b: no event has both/],
      ['mentions=Pod/ns/web-0', /^mentions: /],
      ['text=a,text=b,text!=c,text=d,text=e', /^a field selector has at most 4 texts/],
      ['text=a|b,search=c|d,text=e', /^a field selector has at most 4 texts/],
      [`search=a|${'a'.repeat(257)}`, /^search: a text has at most 256 characters/],
      [`text=${'a'.repeat(257)}`, /^text: a text has at most 256 characters/],
    ] as const) {
      assert.throws(() => select(text, stored({})), { code: 400, message }, text)
    }
  })

  test('mentions finds the regarded and the related object, by name or uid', () => {
    const related = { ...fieldsIn({}).related, kind: 'Node', name: 'n1', uid: UID }
    const event = stored({ related })
    for (const text of [
      'Pod/web-0',
      'pod/web-0',
      'pods/web-0',
      'po/web-0',
      'node/n1',
      'pod/web-*',
      'no/n*|Pod/none',
      'Pod/none|Pod/web-0',
      UID,
    ]) {
      assert.equal(select(`mentions=${text}`, event), true, text)
      assert.equal(select(`mentions!=${text}`, event), false, text)
    }
    for (const text of ['Pod/n1', 'Node/web-0', 'Pod/web-0-*', UID.replace('0b', '0c')]) {
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
    assert.equal(select('text=none|IMAGE', event), true)
    assert.equal(select('text!=none|IMAGE', event), false)
    assert.equal(select('text=none|web', event), false)
  })

  test('search finds a part of a name, kind, note or reason, without case', () => {
    const related = { ...fieldsIn({}).related, kind: 'Node', name: 'İstanbul', uid: 'related-uid' }
    const metadata = { name: 'e1', namespace: 'ns', labels: { app: 'label' } }
    const tree = { metadata, note: 'Back-off "pulling"', reason: 'Odd', regarding: {}, related }
    const regarding = { ...fieldsIn({}).regarding, kind: 'Pod', name: 'Web-0', namespace: 'space' }
    const body = Buffer.from(JSON.stringify({ ...tree, regarding }))
    const event = { ...stored({ note: tree.note, regarding, related }), body }
    for (const [text, isMatch] of [
      ['back-OFF', true],
      ['"pulling"', true],
      ['odd', true],
      ['web-', true],
      ['POD', true],
      ['node', true],
      ['istanbul', false],
      ['i̇stanbul', true],
      ['e1', true],
      ['E1|none', true],
      ['label', false],
      ['space', false],
      ['related-uid', false],
      ['none', false],
    ] as const) {
      assert.equal(select(`search=${text}`, event), isMatch, text)
      assert.equal(select(`search!=${text}`, event), !isMatch, text)
    }
  })
})

test('a shard is compared with each event, whatever an index knows', () => {
  const shards = parseShardSelector(
    "shardRange(object.metadata.namespace, '0x0000000000000000', '0x0000000000000001')",
  )
  const selector = eventSelector(everyLabel, parseFieldSelector('reason=Odd'), 0, shards)
  assert.equal(selector?.requires?.values?.length, 1)
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
    ['metadata.name=a|b', {}],
    ['metadata.name=a*', {}],
    ['metadata.name=a|b,metadata.name=a', { name: 'a' }],
    ['metadata.name=a*,metadata.name=b', { name: 'b', isImpossible: true }],
    ['metadata.name=a,metadata.name!=a*', { name: 'a', isImpossible: true }],
  ]
  for (const [text, expected] of cases) {
    assert.deepEqual(namedBy(parseFieldSelector(text)), { ...none, ...expected }, text)
  }
})
