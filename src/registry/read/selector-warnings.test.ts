import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coreFieldNames, parseFieldSelector } from '../../api/selectors/field-selector.ts'
import { checkContradictions, selectorWarnings } from './selector-warnings.ts'

const warnings = (text: string) => selectorWarnings(parseFieldSelector(text, coreFieldNames))

test('selectors that can hardly match anything have a warning', () => {
  assert.deepEqual(selectorWarnings([]), [])
  assert.deepEqual(selectorWarnings([], { sinceMs: 1, untilMs: 2 }), [])
  assert.match(
    selectorWarnings([], { sinceMs: 2, untilMs: 2 }).join(),
    /^since is not before until/,
  )
})

test('a warning says what to write instead', () => {
  const types = 'the types of events are Normal and Warning'
  const kinds = 'kinds begin with a capital letter, and are compared with case'
  for (const [text, warning] of [
    ['type=Warning', ''],
    ['reason="BackOff"', 'reason="BackOff": leave out the quotes'],
    ['workload=Deployment/web|Pod/web-7d9f8b6c5-x2k4q', ''],
    [
      'workload=rs/web-7d9f8b6c5',
      'workload=rs/web-7d9f8b6c5: its pods belong to Deployment/web: write workload=Deployment/web',
    ],
    ['type=Warning|Normal', ''],
    ['type=Warn*', ''],
    ['type=warning', `type=warning: ${types}`],
    ['type!=Normal|warning', `type!=warning: ${types}`],
    ['involvedObject.kind=Pod|Certificate|', ''],
    ['involvedObject.kind=pod', `involvedObject.kind=pod: ${kinds}: write involvedObject.kind=Pod`],
    ['related.kind!=RS', `related.kind!=RS: ${kinds}: write related.kind!=ReplicaSet`],
    ['involvedObject.kind=cert*', `involvedObject.kind=cert*: ${kinds}`],
    ['reason=A,reason=A|B', ''],
    ['reason=A,reason!=B', ''],
    ['reason=A,type=B*', 'type=B*: the types of events are Normal and Warning'],
    ['mentions=Pod/a,mentions=Pod/b', ''],
    ['reason=Fail*,reason=Failed', ''],
    ['reason=A,reason=B', 'reason=A,reason=B: no event has both; for either write reason=A|B'],
    [
      'reason=a\\,b,reason=B*|C',
      'reason=B*|C,reason=a\\,b: no event has both; for either write reason=B*|C|a\\,b',
    ],
    [
      'involvedObject.name=a,name=b',
      'involvedObject.name=a,name=b: no event has both; for either write involvedObject.name=a|b',
    ],
  ] as const) {
    assert.deepEqual(warnings(text), warning === '' ? [] : [warning], text)
  }
})

test('labels that only this server has must not contradict each other', () => {
  const check = (text: string) => () => checkContradictions(parseFieldSelector(text))
  for (const text of ['reason=A,reason=B', 'controller=a,controller=a|b', 'text=a,text=b']) {
    assert.doesNotThrow(check(text), text)
  }
  for (const label of ['controller', 'action', 'reportingInstance', 'related.name']) {
    assert.throws(check(`${label}=a,${label}=b`), {
      code: 400,
      message: `${label}=a,${label}=b: no event has both; for either write ${label}=a|b`,
    })
  }
})
